import { KilnError } from '../../../errors.ts';
import type { FileKind } from '../answer/counts.ts';
import type { Exchange } from '../answer/exchange.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { Directory, Params } from './directory.ts';
import { answerError } from './http-error.ts';
import { NOT_CACHED } from './respond.ts';

const PLAYLIST = '.m3u8';

/** Runs `serve` on an exchange, and answers and counts the error if it throws one, now or later. */
export function answering(
  form: HlsForm,
  directory: Directory,
  params: Partial<Params>,
  exchange: Exchange,
  serve: (exchange: Exchange) => Promise<void> | void,
): void {
  // caches must not keep errors: a missing file may soon exist
  exchange.headers['cache-control'] = NOT_CACHED;
  try {
    const served = serve(exchange);
    if (served instanceof Promise) served.catch((error: Error) => refuse(form, directory, params, exchange, error));
  } catch (error) {
    refuse(form, directory, params, exchange, error as Error);
  }
}

function refuse(
  form: HlsForm,
  { counts, registry }: Directory,
  params: Partial<Params>,
  exchange: Exchange,
  error: Error,
): void {
  // a rejected player learns no reason (docs/compatibility.md#signed-urls)
  const isSilent = error instanceof KilnError && error.status === 401;
  counts.answered(kindOf(form, params), answerError(error, exchange, isSilent));
  // after a full wait: the player's next media did not come
  if (error instanceof KilnError && error.code === 'playlistOverdue') registry.counters.viewing.stalls[form.kind]++;
}

function kindOf(form: HlsForm, { file = '', token }: Partial<Params>): FileKind {
  if (token === undefined && form.master(file) !== undefined) return 'master';
  if (file.endsWith(PLAYLIST)) return 'chunklist';
  return form.mediaKind(file) ?? 'other';
}
