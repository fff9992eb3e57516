import type { FastifyReply, FastifyRequest } from 'fastify';
import { KilnError } from '../../../errors.ts';

/** Answers a failed viewer request with a line of text. */
export function answerError(
  error: Error & { statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const known = error instanceof KilnError;
  const status = known ? error.status : (error.statusCode ?? 500);
  if (status === 503) reply.header('retry-after', '1');
  if (status >= 500 && !known) request.log.error({ err: error }, 'a viewer request failed');
  reply.code(status).type('text/plain; charset=utf-8');
  reply.send(known || status < 500 ? error.message : 'Internal error');
}
