"""What the test of Django runs: migrations, rows, queries. Its argument is the server's port."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.models import functions

APP = Path(__file__).parent.name


def configure(port: str, user: str, password: str, directory: str) -> None:
    sys.path[:0] = [str(Path(__file__).parent.parent), directory]
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "HOST": "127.0.0.1"}
    settings.configure(
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", APP],
        MIGRATION_MODULES={APP: "shop_migrations"},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        DATABASES={"default": {**database, "PORT": port, "USER": user, "PASSWORD": password}},
    )
    django.setup()


def migrate() -> None:
    call_command("makemigrations", APP, verbosity=0)
    call_command("migrate", verbosity=0)
    call_command("migrate", verbosity=0)  # finds nothing to do
    with connection.cursor() as cursor:
        table = connection.introspection.get_constraints(cursor, f"{APP}_order")
    assert {"not_negative", "one_at_a_time"} <= set(table)


def use_rows() -> None:
    from shop_app.models import Customer, Order, Tag

    ann = Customer.objects.create(name="Ann", email="a@x")
    Customer.objects.bulk_create([Customer(name=f"c{i}", email=f"c{i}@x") for i in range(20)])
    for number in range(10):
        Order.objects.create(customer=ann, total=number, note=None if number % 2 else "even")
    found = Order.objects.aggregate(models.Sum("total"), models.Avg("total"), models.Count("note"))
    assert list(found.values()) == [Decimal("45.00"), Decimal("4.5"), 5], found
    with_orders = Customer.objects.annotate(n=models.Count("orders")).filter(n__gt=0)
    assert list(with_orders.values_list("name", "n")) == [("Ann", 10)]
    assert Customer.objects.filter(name__icontains="AN", email__startswith="a").count() == 1
    assert Customer.objects.filter(name__iregex="^c1").count() == 11
    own = Order.objects.filter(customer=models.OuterRef("pk"))
    assert Customer.objects.filter(models.Exists(own)).get() == ann
    months = Order.objects.annotate(m=functions.TruncMonth("placed")).values("m")
    assert months.annotate(n=models.Count("id")).get()["n"] == 10
    rank = models.Window(functions.RowNumber(), order_by="-total")
    assert list(Order.objects.annotate(r=rank).values_list("r", flat=True)) == list(range(1, 11))
    assert Order.objects.filter(total__gt=3).update(total=models.F("total") * 2 + 1) == 6
    ann.tags.set([Tag.objects.create(label="x"), Tag.objects.create(label="y")])
    assert Customer.objects.prefetch_related("tags").get(pk=ann.pk).tags.count() == 2
    Tag.objects.bulk_create(
        [Tag(label="x", weight=9)],
        update_conflicts=True,
        unique_fields=["label"],
        update_fields=["weight"],
    )
    assert Tag.objects.get(label="x").weight == 9
    with transaction.atomic():
        assert len(Order.objects.select_for_update().filter(customer=ann)) == 10
        try:
            with transaction.atomic():
                Tag.objects.create(label="x")
        except IntegrityError:
            assert Tag.objects.count() == 2
    assert len(list(Order.objects.iterator(chunk_size=3))) == 10
    assert ann.delete()[0] == 13


if __name__ == "__main__":
    configure(*sys.argv[1:])
    migrate()
    use_rows()
    call_command("flush", interactive=False, verbosity=0)
    call_command("migrate", APP, "zero", verbosity=0)
    print("done")
