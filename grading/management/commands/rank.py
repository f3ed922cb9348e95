from grading.management.case_files import CaseCommand
from grading.scoring.cases import rank_case


class Command(CaseCommand):
    help = "Print weighted scores, tiers, ranking and factors of each case in a JSON list."
    case_result = rank_case
