import type { SrtAddress } from '../protocols/srt/address.ts';
import type { StreamId } from '../protocols/srt/stream-id.ts';
import { withPort, type AccessRequest } from './request.ts';

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
    url: withPort(url, localPort),
    client: { address, port, realAddress: address, localPort },
  };
}
