import type { Packet } from '../../core/packet.ts';
import type { ElementaryForm } from './elementary-form.ts';
import { writeClock, writePackets, type Adaptation } from './packet-writer.ts';
import { pesHeader } from './pes-writer.ts';
import type { ClockStep } from './program-clock.ts';
import { writeTables, type WrittenTables } from './program-tables.ts';
import { writeSection } from './section-writer.ts';
import { withSpliceTime } from './splice.ts';

/** One PES packet's content: a packet, or several successive ones of a sound with the times of the first. */
export interface TsUnit extends Pick<Packet, 'track' | 'dts' | 'pts' | 'key'> {
  readonly data: readonly Buffer[];
}

/** What a unit takes, decided when its place in the stream was: it can be written at any time. */
export interface PlannedUnit {
  /** Bytes in whole transport packets, tables and clock included. */
  readonly bytes: number;
  readonly unit: TsUnit;
  readonly pid: number;
  readonly form: ElementaryForm;
  /** Bytes of the elementary stream. */
  readonly payload: number;
  /** In ticks of 90 kHz, without end. */
  readonly pts: number;
  readonly dts: number;
  /** continuity_counter of the first packet with payload. */
  readonly counter: number;
  readonly adaptation: Adaptation | undefined;
  /** In front of it. */
  readonly tables: WrittenTables | undefined;
  readonly clock: ClockStep;
  readonly clockPid: number;
  /** continuity_counter of the packet with payload before, of the PID with the PCR. */
  readonly clockCounter: number;
}

/**
 * Writes a unit in its place.
 * @returns the end
 */
export function writePlanned(planned: PlannedUnit, out: Buffer, start: number): number {
  const { unit, pid, form, payload, pts, dts, counter, adaptation, tables, clock, clockPid, clockCounter } = planned;
  let at = tables === undefined ? start : writeTables(out, start, tables);
  for (const pcr of clock.alone) at = writeClock(out, at, clockPid, clockCounter, pcr);
  if (form.streamId === undefined) {
    // one that takes effect when it comes tells no time, or one that its source does not keep to
    for (const section of unit.data)
      at = writeSection(out, at, pid, counter, pts > dts ? withSpliceTime(section, pts) : section);
    return at;
  }
  const header = pesHeader(form.streamId, pts, dts, payload);
  const pieces = [header];
  for (const data of unit.data) form.payload(data, unit.key, pieces);
  return writePackets(out, at, pid, counter, adaptation, pieces, header.length + payload);
}
