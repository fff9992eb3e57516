import { challengeHeaders } from '../access/challenge.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Exchange } from '../publishers/hls/answer/exchange.ts';
import { NOT_CACHED, respond } from '../publishers/hls/http/respond.ts';
import { SourceError } from './byte-source.ts';
import { ClipError } from './clip/error.ts';

/** Answers a request that failed with JSON, as the management API does. A response that has begun is cut off. */
export function refuse(failure: Error & { readonly statusCode?: number }, exchange: Exchange): void {
  const { response, log, headers } = exchange;
  const error = failure instanceof ClipError ? shownFault(failure) : failure;
  const isKnown = error instanceof KilnError;
  if (error.name === 'AbortError' || (isKnown && error.code === 'clientGone')) return void response.destroy();
  const status = isKnown ? error.status : ((error as typeof failure).statusCode ?? 500);
  if (error instanceof SourceError || (isKnown && error.code === 'playbackFailed'))
    log.error({ reason: error.message }, 'a recording cannot be read for a viewer');
  else if (status >= 500 && !isKnown) log.error({ err: error }, 'a viewer request failed');
  if (response.headersSent) return void response.destroy();
  const text = isKnown || status < 500 ? error.message : 'Internal error';
  const body = Buffer.from(JSON.stringify({ message: `[HTTP] ${text} (${status})`, statusCode: status }));
  headers['cache-control'] = NOT_CACHED;
  const type = { 'content-type': 'application/json;charset=UTF-8' };
  const more = { ...(status === 503 && { 'retry-after': '1' }), ...challengeHeaders(error) };
  respond(exchange, { status, headers: { ...type, ...more }, body: [body] });
}

function shownFault({ fault, message }: ClipError): KilnError {
  if (fault === 'empty') return kilnError('playbackNothing');
  if (fault === 'tooLong') return kilnError('playbackQuery', message);
  return kilnError('playbackFailed', message);
}
