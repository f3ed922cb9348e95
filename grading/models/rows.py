"""Two kinds of row: those a team owns, and those that are history."""

from collections.abc import Collection, Sequence

from django.db import connections, models, router

from grading.errors import FrozenRow


class TeamRows(models.QuerySet):
    """Rows of a team. `visible_to` is the only door to them; a test over the models holds it."""

    team_path = "team"  # lookup from the row to its team
    run_path: str | None = None  # lookup to its run, where a machine token sees only its own run

    def visible_to(self, who, role: str = "viewer"):
        """Rows that a user, in at least this role, or a machine token may touch."""
        from grading.models.people import MachineToken, Role

        if isinstance(who, MachineToken):
            if self.run_path is None:
                return self.filter(**{self.team_path: who.run.team_id})
            return self.filter(**{self.run_path: who.run_id})
        if not who.is_active or not who.is_authenticated:
            return self.none()
        if who.is_superuser:
            return self
        mine = who.memberships.filter(role__in=Role.at_least(role)).values("team")
        return self.filter(**{f"{self.team_path}__in": mine})


def team_rows(team: str, run: str | None = None) -> type[TeamRows]:
    """The queryset class of rows whose team (and run) stand at these lookups."""
    return type("TeamRowsOf", (TeamRows,), {"team_path": team, "run_path": run})


class FrozenSet(models.QuerySet):
    def update(self, **kwargs):
        raise FrozenRow(f"{self.model.__name__} rows are history and never edited", got=sorted(kwargs))

    def delete(self):
        raise FrozenRow(f"{self.model.__name__} rows are history and never deleted")


class FrozenRows(FrozenSet, TeamRows):
    """Rows that a team owns and that are history."""


class Frozen(models.Model):
    """Written once. To change your mind, add a row."""

    class Meta:
        abstract = True

    def save(self, *args, **kwargs):
        if not self._state.adding:
            raise FrozenRow(f"{type(self).__name__} {self.pk} is history and never edited")
        # A new object under an old key would be an UPDATE to Django.
        super().save(*args, **kwargs | {"force_insert": True})

    def delete(self, *args, **kwargs):
        raise FrozenRow(f"{type(self).__name__} {self.pk} is history and never deleted")


def insert_all(rows: Sequence[models.Model], *, unique: str = "", replaced: Collection[str] = ()) -> None:
    """Insert new rows of one model without reading their keys back: `bulk_create` makes an expression of each value.

    Args:
        rows: not saved yet, of a model whose key the database gives.
        unique: a unique field; a row that is there with its value gets the fields `replaced`.
    """
    if not rows:
        return
    meta = rows[0]._meta
    connection = connections[router.db_for_write(type(rows[0]))]
    quoted, fields = connection.ops.quote_name, [field for field in meta.concrete_fields if not field.primary_key]
    columns, places = ", ".join(quoted(field.column) for field in fields), ", ".join(["%s"] * len(fields))
    sql = f"INSERT INTO {quoted(meta.db_table)} ({columns}) VALUES ({places})"  # noqa: S608  names of our own columns
    if unique:
        changed = [quoted(meta.get_field(name).column) for name in replaced]
        named = ", ".join(f"{column} = EXCLUDED.{column}" for column in changed)
        sql += f" ON CONFLICT ({quoted(meta.get_field(unique).column)}) DO UPDATE SET {named}"
    values = [[field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields] for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(sql, values)
