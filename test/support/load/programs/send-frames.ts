import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { serve } from '../program.ts';
import { monotonic } from '../stamp.ts';
import { percentile } from '../statistics.ts';

/** Payload of a packet of RTP, as WebRTC has it. */
const PACKET = 1200;
const STAMP = 8;

interface Frames {
  readonly port: number;
  readonly framerate: number;
  readonly kbit: number;
}

let delays: number[] = [];
let timer: NodeJS.Timeout | undefined;
const sender = createSocket('udp4');

const commands = {
  /** Opens receivers that note when the last packet of a frame is there. @returns their ports */
  async receive(count: number): Promise<number[]> {
    const ports: number[] = [];
    for (let i = 0; i < count; i++) {
      const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 });
      socket.on('message', (packet) => {
        // the last packet of a frame is shorter
        if (packet.length < PACKET) delays.push(monotonic() - packet.readDoubleBE());
      });
      socket.bind(0, '127.0.0.1');
      await once(socket, 'listening');
      ports.push(socket.address().port);
    }
    return ports;
  },

  /** Sends frames in packets, each frame at once, in real time. */
  start({ port, framerate, kbit }: Frames): void {
    const bytes = (kbit * 1000) / 8 / framerate;
    const begun = performance.now();
    let sent = 0;
    const next = () => {
      const stamp = monotonic();
      for (let left = bytes; left > 0; left -= PACKET) {
        const packet = Buffer.alloc(Math.max(STAMP, Math.min(PACKET, left)));
        packet.writeDoubleBE(stamp);
        sender.send(packet, port, '127.0.0.1');
      }
      sent++;
      timer = setTimeout(next, Math.max(0, begun + (sent * 1000) / framerate - performance.now()));
    };
    next();
  },

  /** Forgets the delays so far. */
  reset(_: undefined): void {
    delays = [];
  },

  /** Milliseconds from sending a frame to its last packet at a receiver. */
  report(_: undefined): { p50: number; p99: number } {
    return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
  },

  stop(_: undefined): void {
    clearTimeout(timer);
  },
};

export type FrameCommands = typeof commands;

serve(commands);
