from grading.management.case_files import CaseCommand
from training_bridge.cases import redistribute_case


class Command(CaseCommand):
    help = "Print the training advantages and equivalent rewards of each case in a JSON list."
    case_result = redistribute_case
