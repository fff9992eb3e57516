import { sectionCrc } from '../../../src/containers/mpegts/crc.ts';

export interface PacketOptions {
  readonly pid: number;
  readonly counter?: number;
  readonly starts?: boolean;
  /** What is in front of the payload, its length byte included; filled up when the payload is too short. */
  readonly adaptation?: Buffer;
  /** Of bytes 1 and 3. */
  readonly error?: boolean;
  readonly scrambled?: boolean;
}

/** A transport packet; `payload` has at most 184 bytes, and less with an adaptation field. */
export function tsPacket(
  { pid, counter = 0, starts = false, adaptation, error, scrambled }: PacketOptions,
  payload?: Buffer,
): Buffer {
  const room = 184 - (payload?.length ?? 0);
  const field = room === 0 ? Buffer.alloc(0) : adaptationField(adaptation, room);
  const control =
    (scrambled ? 0x80 : 0) | (field.length > 0 ? 0x20 : 0) | (payload === undefined ? 0 : 0x10) | (counter & 0xf);
  const head = Buffer.of(0x47, (error ? 0x80 : 0) | (starts ? 0x40 : 0) | (pid >> 8), pid & 0xff, control);
  return Buffer.concat([head, field, payload ?? Buffer.alloc(0)], 188);
}

function adaptationField(told: Buffer | undefined, room: number): Buffer {
  const field = Buffer.alloc(room, 0xff);
  field[0] = room - 1;
  if (room > 1) field[1] = 0;
  told?.copy(field, 1);
  return field;
}

/** Packets of one PID, whose counters go on. */
export class TsWriter {
  readonly #pid: number;
  #counter = 0;

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** A unit in as many packets as it takes; the last one is filled. */
  unit(data: Buffer): Buffer[] {
    const packets: Buffer[] = [];
    for (let at = 0; at < data.length; at += 184)
      packets.push(this.packet(data.subarray(at, at + 184), { starts: at === 0 }));
    return packets;
  }

  packet(payload: Buffer | undefined, options: Omit<PacketOptions, 'pid' | 'counter'> = {}): Buffer {
    const counter = payload === undefined ? this.#counter - 1 : this.#counter++;
    return tsPacket({ pid: this.#pid, counter, ...options }, payload);
  }

  /** A packet is lost on its way. */
  skip(): void {
    this.#counter++;
  }

  section(section: Buffer): Buffer[] {
    const data = Buffer.concat([Buffer.of(0), section]);
    const packets = Math.ceil(data.length / 184);
    return this.unit(Buffer.concat([data, Buffer.alloc(packets * 184 - data.length, 0xff)]));
  }
}

/** A section in long form with its checksum. @param id table_id_extension */
export function section(tableId: number, id: number, body: Buffer, { version = 0, current = true } = {}): Buffer {
  const head = Buffer.of(tableId, 0xb0, 0, id >> 8, id & 0xff, 0xc0 | (version << 1) | (current ? 1 : 0), 0, 0);
  const data = Buffer.concat([head, body]);
  data.writeUInt16BE(0xb000 | (data.length + 4 - 3), 1);
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(sectionCrc(data));
  return Buffer.concat([data, crc]);
}

/** @param programs PIDs of PMTs by program number */
export function pat(programs: Readonly<Record<number, number>>, version = 0): Buffer {
  const entries = Object.entries(programs).map(([number, pid]) => {
    const entry = Buffer.alloc(4);
    entry.writeUInt16BE(Number(number));
    entry.writeUInt16BE(0xe000 | pid, 2);
    return entry;
  });
  return section(0, 1, Buffer.concat(entries), { version });
}

export interface PmtStream {
  readonly pid: number;
  readonly type: number;
  readonly descriptors?: Buffer;
}

export function pmt(
  program: number,
  streams: readonly PmtStream[],
  { version = 0, pcrPid = 0x1fff, descriptors = Buffer.alloc(0) as Buffer } = {},
): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(0xe000 | pcrPid);
  head.writeUInt16BE(0xf000 | descriptors.length, 2);
  const loop = streams.flatMap(({ pid, type, descriptors: own = Buffer.alloc(0) }) => {
    const entry = Buffer.alloc(5);
    entry[0] = type;
    entry.writeUInt16BE(0xe000 | pid, 1);
    entry.writeUInt16BE(0xf000 | own.length, 3);
    return [entry, own];
  });
  return section(2, program, Buffer.concat([head, descriptors, ...loop] as Buffer[]), { version });
}

export interface PesOptions {
  readonly streamId?: number;
  readonly pts?: number;
  readonly dts?: number;
  /** The length field is 0. */
  readonly open?: boolean;
  readonly scrambled?: boolean;
}

export function pes(
  payload: Buffer,
  { streamId = 0xe0, pts, dts, open = false, scrambled = false }: PesOptions = {},
): Buffer {
  const times = [
    ...(pts === undefined ? [] : [time(dts === undefined ? 2 : 3, pts)]),
    ...(dts === undefined ? [] : [time(1, dts)]),
  ];
  const flags = (pts === undefined ? 0 : 0x80) | (dts === undefined ? 0 : 0x40);
  const head = Buffer.of(0, 0, 1, streamId, 0, 0, scrambled ? 0xa0 : 0x80, flags, 5 * times.length);
  const packet = Buffer.concat([head, ...times, payload]);
  if (!open) packet.writeUInt16BE(packet.length - 6, 4);
  return packet;
}

function time(mark: number, value: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = (mark << 4) | (Math.floor(value / 2 ** 30) << 1) | 1;
  bytes.writeUInt16BE(((Math.floor(value / 2 ** 15) & 0x7fff) << 1) | 1, 1);
  bytes.writeUInt16BE(((value & 0x7fff) << 1) | 1, 3);
  return bytes;
}
