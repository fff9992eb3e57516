import type { Frame } from '../../../../src/protocols/ovt/media.ts';
import { Receiver, type ReceiverLimits } from '../../../../src/protocols/ovt/receiver.ts';

export interface Received {
  readonly messages: string[];
  readonly frames: Frame[];
  losses: number;
}

export const LIMITS: ReceiverLimits = { messageBytes: 100_000, frameBytes: 200_000 };

/** What a receiver makes of bytes that come in pieces of a size, each in the memory of the one before. @throws OvtError */
export function receive(wire: Buffer, piece = wire.length, limits = LIMITS): Received {
  const received: Received = { messages: [], frames: [], losses: 0 };
  const receiver = new Receiver(limits, {
    message: (text) => received.messages.push(text.toString()),
    frame: (frame) => received.frames.push(frame),
    loss: () => received.losses++,
  });
  const size = Math.max(1, piece);
  const memory = Buffer.alloc(size);
  for (let at = 0; at < wire.length; at += size) {
    const read = memory.subarray(0, wire.copy(memory, 0, at, at + size));
    receiver.push(read);
    read.fill(0xee);
  }
  return received;
}

/** Bytes as hexadecimal digits show them; spaces mean nothing. */
export function hex(digits: string): Buffer {
  return Buffer.from(digits.replace(/\s/g, ''), 'hex');
}
