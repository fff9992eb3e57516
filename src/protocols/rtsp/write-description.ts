import { isIPv6 } from 'node:net';
import { trackPath } from './request-url.ts';
import type { SentTrack } from './sent-track.ts';

const BITS_PER_KBIT = 1000;

interface Described {
  /** Name of the stream. */
  readonly name: string;
  /** Id of the description, a number. */
  readonly id: number;
  /** Address of this server. */
  readonly address: string;
  /** Base of the URLs of tracks, with a slash at the end; empty: they are relative, as a publisher announces them. */
  readonly base: string;
  readonly tracks: readonly SentTrack[];
}

/** Describes a stream in SDP (RFC 8866, RFC 2326 appendix C). URLs of tracks that are played are absolute, since clients join others in different ways. */
export function writeDescription({ name, id, address, base, tracks }: Described): string {
  const family = isIPv6(address) ? 'IP6' : 'IP4';
  const lines = [
    'v=0',
    `o=- ${id} 1 IN ${family} ${address}`,
    // a line cannot hold line breaks
    `s=${name.replace(/[\x00-\x1f\x7f]/g, ' ').trim() || ' '}`,
    `c=IN ${family} ${family === 'IP6' ? '::' : '0.0.0.0'}`,
    't=0 0',
    `a=control:${base || '*'}`,
  ];
  tracks.forEach((track, index) => lines.push(...describeTrack(track, `${base}${trackPath(index)}`)));
  return `${lines.join('\r\n')}\r\n`;
}

function describeTrack({ track, format, payloadType }: SentTrack, control: string): string[] {
  const { encoding, clockRate, channels, parameters } = format;
  const suffix = channels === undefined ? '' : `/${channels}`;
  return [
    `m=${track.type} 0 RTP/AVP ${payloadType}`,
    ...(track.bitrate > 0 ? [`b=AS:${Math.ceil(track.bitrate / BITS_PER_KBIT)}`] : []),
    `a=rtpmap:${payloadType} ${encoding}/${clockRate}${suffix}`,
    ...(parameters === undefined ? [] : [`a=fmtp:${payloadType} ${parameters}`]),
    `a=control:${control}`,
  ];
}
