import { KilnError } from '../errors.ts';
import type { Exchange } from '../publishers/hls/answer/exchange.ts';
import { NOT_CACHED, respond } from '../publishers/hls/http/respond.ts';

/** Answers a request that failed with JSON, as the management API does. A response that has begun is cut off. */
export function refuse(error: Error & { readonly statusCode?: number }, exchange: Exchange): void {
  const { response, log, headers } = exchange;
  const isKnown = error instanceof KilnError;
  if (isKnown && error.code === 'clientGone') return void response.destroy();
  const status = isKnown ? error.status : (error.statusCode ?? 500);
  if (status >= 500 && !isKnown) log.error({ err: error }, 'a viewer request failed');
  if (response.headersSent) return void response.destroy();
  const text = isKnown || status < 500 ? error.message : 'Internal error';
  const body = Buffer.from(JSON.stringify({ message: `[HTTP] ${text} (${status})`, statusCode: status }));
  headers['cache-control'] = NOT_CACHED;
  const type = { 'content-type': 'application/json;charset=UTF-8' };
  respond(exchange, { status, headers: { ...type, ...(status === 503 && { 'retry-after': '1' }) }, body: [body] });
}
