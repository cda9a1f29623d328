"""The MessageBus port with its RabbitMQ and in-process adapters."""
