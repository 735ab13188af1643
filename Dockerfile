# Usher in one static binary, as a user without rights, on nothing else.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /usher ./cmd/usher && mkdir /keys /state

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /usher /usher
# A new volume takes its owner from here: `usher keys` writes into the one, the
# sandbox keeps its payments in the other.
COPY --from=build --chown=65532:65532 /keys /keys
COPY --from=build --chown=65532:65532 /state /state
# By number: an orchestrator that refuses root checks numbers, not names.
USER 65532:65532
# edge, booking, sandbox; the admin listener (9090) stays inside.
EXPOSE 8080 8081 8082
ENTRYPOINT ["/usher"]
