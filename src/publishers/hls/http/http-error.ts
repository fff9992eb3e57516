import { challengeHeaders } from '../../../access/challenge.ts';
import { KilnError } from '../../../errors.ts';
import type { Exchange } from '../answer/exchange.ts';
import { respond } from './respond.ts';

/** Answers a failed viewer request with a line of text, or none. @returns the status */
export function answerError(error: Error & { statusCode?: number }, exchange: Exchange, silent = false): number {
  const known = error instanceof KilnError;
  const status = known ? error.status : (error.statusCode ?? 500);
  if (status >= 500 && !known) exchange.log.error({ err: error }, 'a viewer request failed');
  const headers = {
    'content-type': 'text/plain; charset=utf-8',
    ...(status === 503 && { 'retry-after': '1' }),
    ...challengeHeaders(error),
  };
  const text = known || status < 500 ? error.message : 'Internal error';
  if (exchange.response.headersSent) exchange.response.destroy();
  else respond(exchange, { status, headers, body: silent ? [] : [Buffer.from(text)] });
  return status;
}
