from django.db import migrations, models

from training_bridge.monitor.sums import SPANS, added, of_payout


def add_up(apps, schema_editor):
    """Series of what jobs reported, and sums of what was paid out; what nobody kept (queue, lambda) has no curve."""
    bridge = {name: apps.get_model('training_bridge', name) for name in ('MetricPoint', 'MetricSeries', 'Payout', 'StepSum')}
    points = bridge['MetricPoint'].objects.filter(is_newest=True).values('run', 'name').order_by()
    bridge['MetricSeries'].objects.bulk_create(
        bridge['MetricSeries'](run_id=row['run'], name=row['name'], points=row['n'], tail=row['n'], last_step=row['last'])
        for row in points.annotate(n=models.Count('pk'), last=models.Max('step'))
    )
    sums = {}
    for payout in bridge['Payout'].objects.order_by('pk').iterator():
        for span in SPANS:
            place = payout.run_id, span, payout.step - payout.step % span
            sums[place] = added(sums.get(place, {}), of_payout(payout, 'numbers_refused'))
    bridge['StepSum'].objects.bulk_create(
        (bridge['StepSum'](run_id=run, span=span, step=step, paid=paid) for (run, span, step), paid in sums.items()),
        batch_size=1000,
    )


class Migration(migrations.Migration):

    dependencies = [('training_bridge', '0004_long_runs')]

    operations = [migrations.RunPython(add_up, migrations.RunPython.noop)]
