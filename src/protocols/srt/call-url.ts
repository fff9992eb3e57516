import { hostFromUrl } from '../../lib/address.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../outbound/fragment.ts';
import { SrtError } from './error.ts';
import { readSrtQuery, withWholeQuery, type SrtQuery } from './query.ts';

/** `srt://host[:port][?streamid=…&option=…]` of a listener that is called, or with `mode=listener` of a port of this machine. */
export interface SrtCallUrl extends SrtQuery {
  /** Without brackets around an IPv6 address. */
  readonly host: string;
  readonly port: number;
}

/** Port of a URL that names none: that of OvenMediaEngine's SRT. */
export const SRT_PORT = 9999;
const MAX_LENGTH = 4096;

/**
 * Reads the URL of a stream to receive over SRT. A `#` of a stream id need not be escaped.
 * @throws SrtError that says what is wrong, without values of the query
 */
export function parseSrtCallUrl(given: string): SrtCallUrl {
  const href = withWholeQuery(given);
  if (cutsCredentials(href)) throw new SrtError(FRAGMENT_FAULT);
  if (href.length > MAX_LENGTH || /[\s\x00-\x1f\x7f]/.test(href) || !URL.canParse(href))
    throw new SrtError('it is not a URL');
  const url = new URL(href);
  if (url.hash !== '') throw new SrtError(FRAGMENT_FAULT);
  if (url.protocol !== 'srt:' || url.hostname === '' || url.port === '0')
    throw new SrtError('it does not name a host and a port');
  if (!/^\/*$/.test(url.pathname)) throw new SrtError('SRT has no paths: the stream is named by `streamid`');
  const query = readSrtQuery(url);
  if (query.mode !== 'caller' && query.mode !== 'listener')
    throw new SrtError('the mode of the connection can only be `caller` or `listener`');
  return { ...query, host: hostFromUrl(url.hostname), port: url.port === '' ? SRT_PORT : Number(url.port) };
}
