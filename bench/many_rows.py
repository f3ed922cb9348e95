"""Groups of many steps, delivered, with their rollouts, made by PostgreSQL itself.

One group in five is filtered; each other one has eight ranked passes, a decision and a payout. One rollout in 50 has a
hint, one in 1,000 a confirmed finding; one group in 200 was corrected by a person, in one of 20 the grader flipped.
"""

from django.db import connection

A_STEP, ROLLOUTS, PASSES = 1_568, 16, 8

STATEMENTS = (
    """
    INSERT INTO grading_task (team_id, key, statement, repository_url, base_commit, reference_patch, is_broken,
        created_at)
    SELECT %(team)s, 'many-' || n, 'a task', 'https://example.org/' || n %% 40, '', '', false, now()
    FROM generate_series(0, %(a_step)s - 1) n
    """,
    """
    INSERT INTO grading_rolloutgroup (run_id, life_id, task_id, rubric_id, key, step, policy_version, group_size,
        eligible,
        state, end_reason, version, created_at, completed_at, graded_at, policy, method, neutral_when_equal,
        bodies_wanted,
        bodies_ready, inspected_at, held, hold_reason, reviews_wanted, is_blind, tiers, influence,
        claimed_by, fencing, grading_attempts)
    SELECT %(run)s, %(life)s, tasks.id, %(rubric)s, 'many-' || n, n / %(a_step)s, '', %(rollouts)s, true, 'delivered',
        CASE WHEN n %% 5 = 0 THEN 'filtered_all_passed' ELSE '' END, 1, now(), now(), now(), 'auto', 'redistribute',
        false,
        true, true, now(), n %% 8 = 1, '', 1, false,
        CASE WHEN n %% 5 = 0 THEN 0 WHEN n %% 10 = 1 THEN 1 WHEN n %% 100 = 3 THEN 4 ELSE 7 END,
        CASE WHEN n %% 8 = 1 THEN random() END, '', 0, 0
    FROM generate_series(0, %(steps)s * %(a_step)s - 1) n
    JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM grading_task WHERE key LIKE 'many-%%') tasks
        ON tasks.place = n %% %(a_step)s
    ORDER BY n
    """,
    """
    INSERT INTO grading_trajectory (group_id, run_id, life_id, external_id, letter, outcome, reward, is_truncated,
        is_late,
        integrity, patch, patch_bytes, event_body, log, log_bytes, raw_body, tests, counts, extra, problem,
        content_digest,
        created_at)
    SELECT id, run_id, life_id, key || '/' || n, chr(65 + n),
        CASE WHEN n < %(passes)s THEN 'passed' ELSE 'failed' END, '',
        false, false, CASE WHEN n = 15 AND id %% 62 = 1 THEN 'hack' ELSE '' END, '', 0, '', '', 0, '', '[]',
        '{"tokens": 4096, "turns": 12}', '{}', '', lpad('', 64, '0'), now()
    FROM grading_rolloutgroup, generate_series(0, %(rollouts)s - 1) n WHERE key LIKE 'many-%%' ORDER BY id, n
    """,
    """
    INSERT INTO grading_finding (trajectory_id, kind, by, reason, citations, at)
    SELECT id, integrity, 'agentic', 'seen', '[]', now() FROM grading_trajectory WHERE integrity <> ''
    """,
    """
    INSERT INTO grading_signal (trajectory_id, group_id, detector, is_strong, is_wrong, words, place)
    SELECT id, group_id, 'H' || 1 + id %% 9, id %% 300 = 7, false, 'looks like it', '{}'
    FROM grading_trajectory WHERE id %% 50 = 7
    """,
    """
    INSERT INTO grading_verdict (group_id, purpose, grader, reason, rubric_id, formula, is_valid, problems, reply,
        ranking,
        revisions, notes, fencing, created_at)
    SELECT id, 'training', 'agentic', '', rubric_id, 'gagar-1', true, '[]', '{}', '{}', '[]', '[]', 1, now()
    FROM grading_rolloutgroup WHERE key LIKE 'many-%%' AND end_reason = '' ORDER BY id
    """,
    """
    INSERT INTO grading_verdict (group_id, parent_id, purpose, grader, reason, rubric_id, formula, is_valid,
        problems, reply,
        ranking, revisions, notes, fencing, created_at)
    SELECT group_id, id, 'training', 'person', 'seen otherwise', rubric_id, 'gagar-1', true, '[]', '{}', '{}', '[]',
        '[]', 1,
        now() FROM grading_verdict WHERE parent_id IS NULL AND group_id %% 200 = 1 ORDER BY id
    """,
    """
    INSERT INTO grading_verdictcandidate (verdict_id, trajectory_id, scores, reasons, flags, weighted_score, tier,
        rank, factor)
    SELECT v.id, t.id, '{}', '{}', '[]', 4, 1 + (ascii(t.letter) - 65 + v.group_id) %% 7 / 3, ascii(t.letter) - 65,
        0.5
    FROM grading_verdict v JOIN grading_trajectory t ON t.group_id = v.group_id AND t.outcome = 'passed'
    """,
    """
    INSERT INTO grading_grading (group_id, verdict_id, state, grader, model, endpoint, prompt, attempt, fencing,
        "order",
        asked_by, turns, tool_calls, retries, input_tokens, cached_tokens, output_tokens, transcript, event_count,
        problems,
        flips, started_at, ended_at)
    SELECT group_id, id, 'valid', grader, '', '', '', 1, 1, '[]', '', 1, 1, 0, 1, 0, 1, '', 0, '[]',
        CASE WHEN group_id %% 20 = 3 THEN 0.1 END, now(), now() FROM grading_verdict WHERE parent_id IS NULL
    """,
    """
    INSERT INTO grading_decision (group_id, version, kind, verdict_id, reason, by, at)
    SELECT g.id, 1, CASE WHEN v.id IS NULL THEN 'filtered' WHEN g.id %% 30 = 2 THEN 'fallback' ELSE 'verdict' END,
        CASE WHEN g.id %% 30 <> 2 THEN v.id END, '', 'policy:auto', now()
    FROM grading_rolloutgroup g LEFT JOIN (SELECT group_id, max(id) AS id FROM grading_verdict GROUP BY group_id) v
        ON v.group_id = g.id WHERE g.key LIKE 'many-%%' ORDER BY g.id
    """,
    """
    INSERT INTO training_bridge_payout (group_id, run_id, step, version, regime, reason, is_inverted, by_deadline,
        factor_sum, factors, valid, passes,
        tier_1,
        tier_2, tier_3, credit_due, credit_paid, penalty_due, penalty_paid, advantage_tokens, tokens, declared_at,
        decided_at)
    SELECT g.id, g.run_id, g.step, 1,
        CASE d.kind WHEN 'verdict' THEN CASE g.id %% 2 WHEN 0 THEN 'exact' ELSE 'bounded' END
        ELSE d.kind END, '', false, false, 0, 0, 16, 8, coalesce(c.one, 0), coalesce(c.two, 0), coalesce(c.three, 0),
        4, 4, 4, 4, 0, 1, now(), now()
    FROM grading_rolloutgroup g JOIN grading_decision d ON d.group_id = g.id
    LEFT JOIN (SELECT verdict_id, count(*) FILTER (WHERE tier = 1) AS one, count(*) FILTER (WHERE tier = 2) AS two,
        count(*) FILTER (WHERE tier = 3) AS three FROM grading_verdictcandidate GROUP BY verdict_id) c
        ON c.verdict_id = d.verdict_id WHERE g.key LIKE 'many-%%' ORDER BY g.id
    """,
)  # fmt: skip


def make(run, life, *, steps: int) -> None:
    """Fill the database, then let PostgreSQL look at what it holds, as it does by itself after a while."""
    said = {"team": run.team_id, "run": run.pk, "life": life.pk, "rubric": run.rubric_id}
    said |= {"steps": steps, "a_step": A_STEP, "rollouts": ROLLOUTS, "passes": PASSES}
    with connection.cursor() as cursor:
        for statement in STATEMENTS:
            cursor.execute(statement, said)
        cursor.execute("VACUUM ANALYZE")
