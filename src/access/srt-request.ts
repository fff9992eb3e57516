import type { SrtAddress } from '../protocols/srt/address.ts';
import type { StreamId } from '../protocols/srt/stream-id.ts';
import { urlWithPort, type AccessRequest } from './request.ts';

/** Of what a caller asks for that cannot be read, that much is logged, in characters. */
const MAX_ASKED = 300;
const QUERY = /\?|%3f/i;

/** What an SRT caller asks for, for the log: without its query, which may hold credentials, also where all is percent-encoded. */
export function askedBySrt(id: StreamId | undefined, streamId: string): string {
  if (id === undefined) return streamId.slice(0, MAX_ASKED).split(QUERY, 1)[0] ?? '';
  const { host, app, stream, playlist } = id;
  return [host, app, stream, ...(playlist === undefined ? [] : [playlist])].join('/').slice(0, MAX_ASKED);
}

/** What an SRT caller asks for: the host in its stream id is a virtual host by its name, or else a domain name. */
export function srtAccess(
  { host, app, stream, playlist, query, url }: StreamId,
  peer: SrtAddress,
  localPort: number,
): Omit<AccessRequest, 'direction' | 'protocol'> {
  const { address, port } = peer;
  return {
    vhostName: host,
    hostName: host,
    app,
    stream,
    playlist,
    query,
    ...urlWithPort(url, localPort),
    client: { address, port, realAddress: address, localPort },
  };
}
