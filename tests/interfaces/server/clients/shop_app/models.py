"""Models of the shop: keys of every kind, indexes, constraints."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Lower


class Tag(models.Model):
    label = models.CharField(max_length=20, unique=True)
    weight = models.IntegerField(default=0)
    took = models.DurationField(null=True)


class Customer(models.Model):
    name = models.CharField(max_length=40, db_index=True)
    email = models.EmailField(unique=True)
    active = models.BooleanField(default=True)
    tags = models.ManyToManyField(Tag)

    class Meta:
        indexes = (
            models.Index(fields=["-name", "email"], name="by_name"),
            models.Index(Lower("email"), name="by_lower_email"),
            models.Index(fields=["name"], name="if_active", condition=models.Q(active=True)),
        )


class Order(models.Model):
    customer = models.ForeignKey(Customer, related_name="orders", on_delete=models.CASCADE)
    placed = models.DateTimeField(auto_now_add=True)
    total = models.DecimalField(max_digits=10, decimal_places=2)
    note = models.TextField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=models.Q(total__gte=0), name="not_negative"),
            models.UniqueConstraint(fields=["customer", "placed"], name="one_at_a_time"),
        )
