import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../../../log/log.ts';
import type { HttpRequest, HttpResponse } from '../../../protocols/http.ts';

/** A viewer's request over HTTP with the response to it, which is written without the framework's serialization. */
export interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** Host that the client asked, without its port. */
  readonly hostname: string;
  /** Headers of the response so far, by names in lower case. */
  readonly headers: Record<string, string>;
  readonly log: Pick<Logger, 'error'>;
}

/** Takes a request from the framework, which sends nothing and catches no error of it from then on. */
export function exchangeOf(request: FastifyRequest, reply: FastifyReply): Exchange {
  reply.hijack();
  return {
    request: request.raw,
    response: reply.raw,
    hostname: request.hostname,
    headers: reply.getHeaders() as Record<string, string>,
    log: request.log,
  };
}
