# ascend-elk, for the enrichment service and the jobs of docker-compose.yml. linux/amd64 and linux/arm64:
#   docker buildx build --platform linux/amd64,linux/arm64 --tag ascend-elk:0.1.0 .
FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY ascend_elk ascend_elk
COPY grok grok
COPY codes codes
COPY filebeat filebeat
COPY logstash logstash
COPY elasticsearch elasticsearch
COPY kibana kibana
COPY ansible ansible
RUN python -m venv /opt/ascend-elk && /opt/ascend-elk/bin/pip install --no-cache-dir ".[service]"

FROM python:3.12-slim-bookworm
COPY --from=build /opt/ascend-elk /opt/ascend-elk
# Any user whose group is 0 may write here; volumes take over owner and mode.
RUN mkdir -p /var/lib/ascend-elk/keys /var/lib/ascend-elk/sample && chmod -R 0770 /var/lib/ascend-elk
ENV PATH=/opt/ascend-elk/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:0
EXPOSE 9620
ENTRYPOINT ["ascend-elk"]
CMD ["enrich"]
