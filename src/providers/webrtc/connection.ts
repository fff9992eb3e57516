import type { types } from 'mediasoup';
import type { Connection } from '../../core/source.ts';
import type { RelayAddresses } from './relay-addresses.ts';

/** Connection of a publisher as the management API shows it; undefined until ICE has selected a pair. */
export function connectionOf(
  tuple: types.TransportTuple | undefined,
  relays: Pick<RelayAddresses, 'has'>,
): Connection | undefined {
  if (tuple === undefined) return undefined;
  const { protocol, localAddress, localPort, remoteIp, remotePort } = tuple;
  const over = protocol === 'tcp' ? 'TCP' : 'UDP';
  const relayed = remoteIp !== undefined && relays.has(remoteIp);
  return {
    transport: relayed ? 'TURN' : over,
    protocol: over,
    localAddress,
    localPort,
    remoteAddress: remoteIp,
    remotePort,
  };
}
