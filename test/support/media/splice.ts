import { BitWriter } from '../../../src/codecs/bits.ts';
import { sectionCrc } from '../../../src/containers/mpegts/crc.ts';

export interface Insert {
  readonly eventId: number;
  readonly out: boolean;
  /** Seconds. */
  readonly duration?: number;
  readonly autoReturn?: boolean;
  readonly components?: number;
}

/** A splice_insert that takes effect at once (SCTE 35 9.7.3). */
export function spliceInsert({ eventId, out, duration, autoReturn = false, components }: Insert): Buffer {
  const command = new BitWriter().write(eventId, 32).flag(false).write(0x7f, 7);
  command
    .flag(out)
    .flag(components === undefined)
    .flag(duration !== undefined)
    .flag(true)
    .write(0xf, 4);
  if (components !== undefined) {
    command.write(components, 8);
    for (let tag = 0; tag < components; tag++) command.write(tag, 8);
  }
  if (duration !== undefined)
    command
      .flag(autoReturn)
      .write(0x3f, 6)
      .write(0, 1)
      .write(duration * 90_000, 32);
  command.write(1, 16).write(0, 8).write(0, 8);
  return spliceSection(5, command.finish());
}

/** A time_signal without a time, with descriptors (SCTE 35 9.7.4, 10.3.3). */
export function timeSignal(...descriptors: readonly Buffer[]): Buffer {
  return spliceSection(6, Buffer.of(0x7f), Buffer.concat(descriptors));
}

/** A segmentation descriptor. @param seconds duration; undefined for none */
export function segmentation(eventId: number, type: number, seconds?: number): Buffer {
  const body = new BitWriter().write(0x43554549, 32).write(eventId, 32).flag(false).write(0x7f, 7);
  body
    .flag(true)
    .flag(seconds !== undefined)
    .write(0x3f, 6);
  if (seconds !== undefined) body.write(0, 8).write(seconds * 90_000, 32);
  body.write(8, 8).write(2, 8).write(0xabcd, 16).write(type, 8).write(1, 8).write(1, 8);
  const bytes = body.finish();
  return Buffer.concat([Buffer.of(2, bytes.length), bytes]);
}

/** A splice_info_section of any command. */
export function spliceSection(type: number, command: Buffer, descriptors = Buffer.alloc(0)): Buffer {
  const length = 11 + command.length + 2 + descriptors.length + 4;
  const head = new BitWriter().write(0xfc, 8).write(0x3, 4).write(length, 12).write(0, 8).flag(false).write(0, 6);
  head.write(0, 1).write(0, 32).write(0, 8).write(0xfff, 12).write(command.length, 12).write(type, 8);
  const loop = Buffer.alloc(2);
  loop.writeUInt16BE(descriptors.length);
  const section = Buffer.concat([head.finish(), command, loop, descriptors]);
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(sectionCrc(section));
  return Buffer.concat([section, crc]);
}
