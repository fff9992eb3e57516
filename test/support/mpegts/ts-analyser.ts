/** What an independent look at a transport stream finds (ISO/IEC 13818-1, ETSI TR 101 290). */
export interface TsAnalysis {
  readonly packets: number;
  /** What is wrong, in words; empty for a stream that is right. */
  readonly errors: readonly string[];
  /** By PID, in order. */
  readonly pcrs: ReadonlyMap<number, readonly number[]>;
  /** Packet numbers that PATs begin in. */
  readonly pats: readonly number[];
  readonly pmts: readonly {
    readonly packet: number;
    readonly version: number;
    readonly streams: ReadonlyMap<number, number>;
    readonly bytes: Buffer;
  }[];
  /** PES packets by PID. */
  readonly pes: ReadonlyMap<number, readonly PesPacket[]>;
  readonly sections: ReadonlyMap<number, readonly Buffer[]>;
}

export interface PesPacket {
  readonly packet: number;
  readonly streamId: number;
  readonly pts: number;
  readonly dts: number;
  readonly random: boolean;
  readonly payload: Buffer;
}

const SIZE = 188;

/** Takes a stream apart without any code of the server. */
export function analyse(ts: Buffer): TsAnalysis {
  const errors: string[] = [];
  const counters = new Map<number, number>();
  const pcrs = new Map<number, number[]>();
  const open = new Map<number, { packet: number; random: boolean; chunks: Buffer[] }>();
  const units = new Map<number, { packet: number; random: boolean; data: Buffer }[]>();
  if (ts.length % SIZE !== 0) errors.push(`${ts.length} bytes are no whole packets`);
  const close = (pid: number): void => {
    const unit = open.get(pid);
    if (unit === undefined) return;
    units.set(pid, [
      ...(units.get(pid) ?? []),
      { packet: unit.packet, random: unit.random, data: Buffer.concat(unit.chunks) },
    ]);
    open.delete(pid);
  };
  for (let number = 0; number * SIZE < ts.length; number++) {
    const packet = ts.subarray(number * SIZE, (number + 1) * SIZE);
    if (packet[0] !== 0x47) errors.push(`packet ${number} has no sync byte`);
    const pid = packet.readUInt16BE(1) & 0x1fff;
    const starts = (packet.readUInt8(1) & 0x40) !== 0;
    const control = (packet.readUInt8(3) >> 4) & 3;
    const counter = packet.readUInt8(3) & 15;
    let at = 4;
    let random = false;
    let discontinuity = false;
    if (control >= 2) {
      const length = packet.readUInt8(4);
      if (length > (control === 2 ? 183 : 182)) errors.push(`packet ${number}: an adaptation field of ${length} bytes`);
      if (length > 0) {
        const flags = packet.readUInt8(5);
        random = (flags & 0x40) !== 0;
        discontinuity = (flags & 0x80) !== 0;
        if ((flags & 0x10) !== 0)
          pcrs.set(pid, [...(pcrs.get(pid) ?? []), packet.readUInt32BE(6) * 2 + (packet.readUInt8(10) >> 7)]);
        const used = 1 + ((flags & 0x10) !== 0 ? 6 : 0);
        if (packet.subarray(5 + used, 5 + length).some((byte) => byte !== 0xff))
          errors.push(`packet ${number}: stuffing is not 0xff`);
      }
      at = 5 + length;
    }
    const before = counters.get(pid);
    const payload = (control & 1) !== 0;
    const expected = before === undefined ? undefined : payload ? (before + 1) & 15 : before;
    if (expected !== undefined && expected !== counter && !discontinuity)
      errors.push(`packet ${number}: counter ${counter} of PID ${pid}, not ${expected}`);
    if (before !== undefined || payload) counters.set(pid, counter);
    if (!payload) continue;
    if (starts) {
      close(pid);
      open.set(pid, { packet: number, random, chunks: [] });
    }
    const unit = open.get(pid);
    if (unit === undefined) errors.push(`packet ${number} goes on with what has not begun`);
    unit?.chunks.push(packet.subarray(at));
  }
  for (const pid of open.keys()) close(pid);

  const pats = units.get(0) ?? [];
  const [pat] = pats.map(({ data }) => sectionOf(data, errors));
  const pmtPid = pat === undefined ? -1 : pat.readUInt16BE(10) & 0x1fff;
  const pmts = (units.get(pmtPid) ?? []).map(({ packet, data }) => {
    const bytes = sectionOf(data, errors);
    return { packet, version: (bytes.readUInt8(5) >> 1) & 31, streams: streamsOf(bytes), bytes };
  });
  const types = new Map(pmts.flatMap(({ streams }) => [...streams]));
  const pes = new Map<number, PesPacket[]>();
  const sections = new Map<number, Buffer[]>();
  for (const [pid, all] of units) {
    if (pid === 0 || pid === pmtPid) continue;
    if (!types.has(pid)) errors.push(`PID ${pid} is not in the PMT`);
    else if (types.get(pid) === 0x86)
      sections.set(
        pid,
        all.map(({ data }) => sectionOf(data, errors)),
      );
    else
      pes.set(
        pid,
        all.map(({ packet, random, data }) => ({ packet, random, ...pesOf(data, errors) })),
      );
  }
  return { packets: ts.length / SIZE, errors, pcrs, pats: pats.map(({ packet }) => packet), pmts, pes, sections };
}

function sectionOf(data: Buffer, errors: string[]): Buffer {
  const start = 1 + data.readUInt8(0);
  const section = data.subarray(start, start + 3 + (data.readUInt16BE(start + 1) & 0xfff));
  if (crc(section) !== 0) errors.push(`a section of table ${section[0]} has a wrong checksum`);
  if (data.subarray(start + section.length).some((byte) => byte !== 0xff))
    errors.push('there is something behind a section');
  return section;
}

function streamsOf(pmt: Buffer): Map<number, number> {
  const streams = new Map<number, number>();
  for (
    let at = 12 + (pmt.readUInt16BE(10) & 0xfff);
    at < pmt.length - 4;
    at += 5 + (pmt.readUInt16BE(at + 3) & 0xfff)
  ) {
    streams.set(pmt.readUInt16BE(at + 1) & 0x1fff, pmt.readUInt8(at));
  }
  return streams;
}

function pesOf(data: Buffer, errors: string[]): Omit<PesPacket, 'packet' | 'random'> {
  if (data.readUIntBE(0, 3) !== 1) errors.push('a PES packet without start code');
  const length = data.readUInt16BE(4);
  if (length !== 0 && length !== data.length - 6) errors.push(`a PES packet of ${data.length} bytes says ${length}`);
  const flags = data.readUInt8(7) >> 6;
  const pts = timeOf(data, 9);
  return {
    streamId: data.readUInt8(3),
    pts,
    dts: flags === 3 ? timeOf(data, 14) : pts,
    payload: data.subarray(9 + data.readUInt8(8)),
  };
}

function timeOf(data: Buffer, at: number): number {
  return (
    ((data.readUInt8(at) >> 1) & 7) * 2 ** 30 +
    (data.readUInt16BE(at + 1) >> 1) * 2 ** 15 +
    (data.readUInt16BE(at + 3) >> 1)
  );
}

/** Bit by bit, as the standard draws it. */
function crc(data: Buffer): number {
  let rest = 0xffffffff;
  for (const byte of data) {
    for (let bit = 7; bit >= 0; bit--) {
      const high = (rest >>> 31) ^ ((byte >> bit) & 1);
      rest = (rest << 1) >>> 0;
      if (high === 1) rest = (rest ^ 0x04c11db7) >>> 0;
    }
  }
  return rest;
}
