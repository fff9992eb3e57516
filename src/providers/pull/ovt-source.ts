import { parseOvtUrl } from '../../protocols/ovt/url.ts';
import { endedBy } from '../../lib/ended-by.ts';
import { OvtClient } from '../ovt/client.ts';
import { connectionOf, dial } from '../../protocols/outbound/dial.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import { PullError } from './error.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import type { OpenSource } from './source.ts';

/** Connects to OVT origins that the guard allows. */
export function ovtSource(guard: OutboundGuard): OpenSource {
  return async (target, options) => {
    const url = parseOvtUrl(target);
    if (url === undefined) throw new PullError(`not an OVT URL: ${shownUrl(target)}`);
    const { signal } = options;
    const socket = await dial(guard, url.host, url.port, { signal });
    const connection = connectionOf(socket);
    const described = OvtClient.connect({ stream: socket, target }, options);
    const client = await endedBy(signal, () => socket.destroy(), described);
    return { connection, play: (sink) => client.play(sink), close: () => client.close() };
  };
}
