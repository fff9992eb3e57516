import type { SrtAddress } from '../protocols/srt/address.ts';
import type { StreamId } from '../protocols/srt/stream-id.ts';
import { urlWithPort, type AccessRequest } from './request.ts';

/** Characters of an unreadable stream id that are logged. */
const MAX_ASKED = 300;
const QUERY = /\?|%3f/i;

/** Requested names of an SRT caller, for the log: without the query, which may hold credentials, also where all is percent-encoded. */
export function askedBySrt(id: StreamId | undefined, streamId: string): string {
  if (id === undefined) return streamId.slice(0, MAX_ASKED).split(QUERY, 1)[0] ?? '';
  const { host, app, stream, playlist } = id;
  return [host, app, stream, ...(playlist === undefined ? [] : [playlist])].join('/').slice(0, MAX_ASKED);
}

/** Names that an SRT caller requests: the host in its stream id is a virtual host by its name, or else a domain name. */
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
