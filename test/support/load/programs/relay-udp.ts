import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { serve } from '../program.ts';

const commands = {
  /** Passes each datagram on to some ports of loopback. @returns its own port */
  async open(targets: readonly number[]): Promise<number> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 });
    socket.on('message', (datagram) => {
      for (const port of targets) socket.send(datagram, port, '127.0.0.1');
    });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return socket.address().port;
  },
};

/** A bare UDP relay: as many packets as WebRTC viewers get, and nothing else. */
export type UdpRelayCommands = typeof commands;

serve(commands);
