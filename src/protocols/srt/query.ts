import { readSrtOption, type SrtOption } from '../../lib/srt-options.ts';
import { SrtError } from './error.ts';

/** Options in the query of an SRT URL. */
export interface SrtQuery {
  /** Which side calls: `caller`, `listener`, `rendezvous`, or anything else that a client has written. */
  readonly mode: string;
  readonly streamId: string;
  readonly options: readonly SrtOption[];
}

/** Other names of options: those of ffmpeg, and `timeout`, which the management API's documentation uses. */
const ALIASES: Readonly<Record<string, string>> = {
  timeout: 'conntimeo',
  connect_timeout: 'conntimeo',
  pkt_size: 'payloadsize',
  ffs: 'fc',
  tos: 'iptos',
  ttl: 'ipttl',
};
/** Options that libsrt does not get, or whose value is fixed. */
const OTHERS: ReadonlySet<string> = new Set(['mode', 'streamid', 'transtype']);
const MAX_STREAM_ID_BYTES = 512;

/**
 * Keeps a `#` in the query of an SRT URL: stream ids begin with `#!::` (SRT Access Control Guidelines), and SRT's own
 * tools and ffmpeg take them unescaped.
 */
export function withWholeQuery(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? url : url.slice(0, at) + url.slice(at).replaceAll('#', '%23');
}

/**
 * Reads the query of an SRT URL: socket options of libsrt in lower case and without `SRTO_`, in libsrt's own units, so
 * that times are milliseconds and bandwidths bytes per second.
 * @throws SrtError, in which no value is
 */
export function readSrtQuery({ searchParams }: URL): SrtQuery {
  const streamId = searchParams.get('streamid') ?? '';
  if (Buffer.byteLength(streamId) > MAX_STREAM_ID_BYTES)
    throw new SrtError(`streamid has more than ${MAX_STREAM_ID_BYTES} bytes`);
  const options: SrtOption[] = [];
  for (const [key, value] of searchParams) {
    if (OTHERS.has(key)) continue;
    const option = readSrtOption(`SRTO_${(ALIASES[key] ?? key).toUpperCase()}`, value);
    if ('at' in option) throw new SrtError(`${option.at === 'value' ? `${key} ` : ''}${option.message}`);
    options.push(option);
  }
  return { mode: searchParams.get('mode') ?? 'caller', streamId, options };
}
