import { hostFromUrl } from '../../lib/address.ts';
import { percentDecoded } from '../../lib/percent.ts';

/** URL of a request: `rtsp://host[:port]/app/stream[/playlist][/trackID=n][?query]`. */
export interface RequestUrl {
  /** Without port, and without brackets around an IPv6 address. */
  readonly host: string;
  readonly app: string;
  readonly stream: string;
  readonly playlist: string | undefined;
  /** Number of the track that it names; undefined for all of them. */
  readonly track: number | undefined;
  readonly query: URLSearchParams;
  /** As given, without user and track. */
  readonly href: string;
  /** Base of the URLs of tracks: `href` without query, with a slash at the end. */
  readonly base: string;
}

const MAX_LENGTH = 4096;
const FORM = /^(rtsps?|rtsp[tu]):\/\/(?:[^@/?#]*@)?([^@/?#]+)([^?#]*)(\?[^#]*)?/i;
const TRACK = /^trackID=(\d{1,3})$/i;

/** Control URL of a track, relative to the base. */
export function trackPath(track: number): string {
  return `trackID=${track}`;
}

/** Reads the URL of a request; undefined where it names no stream. */
export function readRequestUrl(uri: string): RequestUrl | undefined {
  const found = uri.length > MAX_LENGTH ? null : FORM.exec(uri);
  if (found === null) return undefined;
  const [, scheme = '', authority = '', path = '', rest = ''] = found;
  // some clients append the track to the query of a base URL
  const inQuery = /^(\?.*?)\/?(trackID=\d{1,3})?\/?$/i.exec(rest);
  const query = inQuery?.[1] ?? '';
  const names = path.split('/').filter((name) => name !== '');
  const last = TRACK.exec(names.at(-1) ?? '') ?? TRACK.exec(inQuery?.[2] ?? '');
  if (TRACK.test(names.at(-1) ?? '')) names.pop();
  const [app, stream, playlist, ...more] = names.map(percentDecoded);
  const address = `http://${authority}/`;
  if (app === undefined || stream === undefined || more.length > 0 || !URL.canParse(address)) return undefined;
  const plain = `${/s$/i.test(scheme) ? 'rtsps' : 'rtsp'}://${authority}/${names.join('/')}`;
  return {
    host: hostFromUrl(new URL(address).hostname),
    app,
    stream,
    playlist,
    track: last === null ? undefined : Number(last[1]),
    query: new URLSearchParams(query),
    href: `${plain}${query}`,
    base: `${plain}/`,
  };
}
