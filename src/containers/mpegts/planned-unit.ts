import type { Packet } from '../../core/packet.ts';
import type { ElementaryForm } from './elementary-form.ts';
import { writeClock, writePackets, type Adaptation } from './packet-writer.ts';
import { pesHeader } from './pes-writer.ts';
import type { ClockStep } from './program-clock.ts';
import { writeTables, type WrittenTables } from './program-tables.ts';
import { writeSection } from './section-writer.ts';
import { withSpliceTime } from './splice.ts';

/** Content of one PES packet: a packet, or several successive audio packets with the times of the first. */
export interface TsUnit extends Pick<Packet, 'track' | 'dts' | 'pts' | 'key'> {
  readonly data: readonly Buffer[];
}

/** Unit with its place in the stream, to be written at any time. */
export interface PlannedUnit {
  /** Size in whole transport packets, tables and clock included. */
  readonly bytes: number;
  readonly unit: TsUnit;
  readonly pid: number;
  readonly form: ElementaryForm;
  /** Size of the elementary stream's data. */
  readonly payload: number;
  /** In ticks of 90 kHz, not wrapped. */
  readonly pts: number;
  readonly dts: number;
  /** continuity_counter of the first packet with payload. */
  readonly counter: number;
  readonly adaptation: Adaptation | undefined;
  /** Tables before the unit. */
  readonly tables: WrittenTables | undefined;
  readonly clock: ClockStep;
  readonly clockPid: number;
  /** continuity_counter of the previous packet with payload, on the PID with the PCR. */
  readonly clockCounter: number;
}

/** @returns the end */
export function writePlanned(planned: PlannedUnit, out: Buffer, start: number): number {
  const { unit, pid, form, payload, pts, dts, counter, adaptation, tables, clock, clockPid, clockCounter } = planned;
  let at = tables === undefined ? start : writeTables(out, start, tables);
  for (const pcr of clock.alone) at = writeClock(out, at, clockPid, clockCounter, pcr);
  if (form.streamId === undefined) {
    // an immediate splice has no time, and a splice may differ from the time of its packet
    for (const section of unit.data)
      at = writeSection(out, at, pid, counter, pts > dts ? withSpliceTime(section, pts) : section);
    return at;
  }
  const header = pesHeader(form.streamId, pts, dts, payload);
  const pieces = [header];
  for (const data of unit.data) form.payload(data, unit.key, pieces);
  return writePackets(out, at, pid, counter, adaptation, pieces, header.length + payload);
}
