import { readSrtOption, type SrtOption } from '../lib/srt-options.ts';
import { PushError } from './error.ts';

/** Options in the query of an SRT URL. */
export interface SrtQuery {
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
 * Reads the query of an SRT URL: socket options of libsrt in lower case and without `SRTO_`, in libsrt's own units, so
 * that times are milliseconds and bandwidths bytes per second.
 * @throws PushError, in which no value is
 */
export function readSrtQuery({ searchParams }: URL): SrtQuery {
  const mode = searchParams.get('mode') ?? 'caller';
  if (mode !== 'caller') throw new PushError('Unsupported connection mode');
  const streamId = searchParams.get('streamid') ?? '';
  if (Buffer.byteLength(streamId) > MAX_STREAM_ID_BYTES)
    throw new PushError(`Could not parse url: streamid has more than ${MAX_STREAM_ID_BYTES} bytes`);
  const options: SrtOption[] = [];
  for (const [key, value] of searchParams) {
    if (OTHERS.has(key)) continue;
    const option = readSrtOption(`SRTO_${(ALIASES[key] ?? key).toUpperCase()}`, value);
    if ('at' in option)
      throw new PushError(`Could not parse url: ${option.at === 'value' ? `${key} ` : ''}${option.message}`);
    options.push(option);
  }
  return { streamId, options };
}
