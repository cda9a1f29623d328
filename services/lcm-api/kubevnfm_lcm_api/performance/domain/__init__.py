"""The rules of performance management: metrics, what is measured, queries, periods and crossings."""
