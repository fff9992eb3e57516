import { readMediaName } from '../../lib/media-name.ts';
import type { AccessRequest, Target } from '../request.ts';

const WEB = ['http', 'https', 'ws', 'wss'];
/** Schemes that a client can be sent to: its protocol stays. */
const SCHEMES: Readonly<Partial<Record<AccessRequest['protocol'], readonly string[]>>> = {
  rtmp: ['rtmp', 'rtmps'],
  srt: ['srt'],
  rtsp: ['rtsp', 'rtsps'],
  webrtc: WEB,
  llhls: WEB,
  hlsv3: WEB,
  playback: WEB,
  thumbnail: WEB,
  flv: WEB,
};

/** Protocols whose files are not named by the stream's configuration. */
const NO_PLAYLISTS: ReadonlySet<string> = new Set(['playback', 'thumbnail']);

/**
 * The names in a URL that a control server sends a client to: `scheme://host[:port]/app/stream[/file]`. The port and the
 * query have no meaning, and the viewer gets the container that it asked for.
 * @returns undefined where the client cannot be sent there
 */
export function targetOf(newUrl: string, asked: AccessRequest): Partial<Target> | undefined {
  if (!URL.canParse(newUrl)) return undefined;
  const { protocol, hostname, pathname } = new URL(newUrl);
  const given = names(pathname);
  const path = asked.protocol === 'flv' ? given?.map(withoutContainer) : given;
  const [app, stream, file, ...more] = path ?? [];
  if (!SCHEMES[asked.protocol]?.includes(protocol.slice(0, -1)) || !hostname || !app || !stream || more.length > 0)
    return undefined;
  if (file !== undefined && asked.direction === 'incoming') return undefined;
  const hostName = hostname.replace(/^\[|\]$/g, '');
  const isSameHost = hostName.toLowerCase() === asked.hostName.toLowerCase();
  const isPlaylist = file !== undefined && file !== '' && !NO_PLAYLISTS.has(asked.protocol);
  return {
    // a host that was asked for by the name of a virtual host is no domain name
    ...(!isSameHost && { hostName }),
    app,
    stream,
    ...(isPlaylist && { playlist: file.replace(/\.m3u8$/, '') }),
  };
}

/** The last element of a path without `.flv` or `.ts`. */
function withoutContainer(name: string, index: number, all: readonly string[]): string {
  return index === all.length - 1 ? (readMediaName(name)?.name ?? name) : name;
}

function names(pathname: string): string[] | undefined {
  try {
    return pathname.slice(1).split('/').map(decodeURIComponent);
  } catch {
    return undefined;
  }
}
