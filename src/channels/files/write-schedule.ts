import { xmlAttribute, xmlText } from '../../lib/xml-text.ts';
import type { Item, ScheduleSpec } from '../scheduled/spec.ts';

/** Serializes a channel as a `.sch` file. */
export function writeSchedule(name: string, { stream, fallbackProgram, programs }: ScheduleSpec): string {
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Schedule>',
    '  <Stream>',
    `    <Name>${xmlText(name)}</Name>`,
    `    <BypassTranscoder>${stream.bypassTranscoder}</BypassTranscoder>`,
    `    <VideoTrack>${stream.videoTrack}</VideoTrack>`,
    `    <AudioTrack>${stream.audioTrack}</AudioTrack>`,
    ...audioMap(stream.audioMap),
    `    <ErrorToleranceDurationMs>${stream.errorToleranceDurationMs}</ErrorToleranceDurationMs>`,
    '  </Stream>',
  ];
  if (fallbackProgram !== undefined)
    lines.push('  <FallbackProgram>', ...fallbackProgram.items.map(itemLine), '  </FallbackProgram>');
  for (const { name: title, scheduled, repeat, items } of programs) {
    const given = attributes({ name: title, scheduled: new Date(scheduled).toISOString(), repeat });
    lines.push(`  <Program${given}>`, ...items.map(itemLine), '  </Program>');
  }
  return `${[...lines, '</Schedule>'].join('\n')}\n`;
}

function audioMap(items: ScheduleSpec['stream']['audioMap']): string[] {
  if (items.length === 0) return [];
  return ['    <AudioMap>', ...items.map((item) => `      <Item${attributes(item)}/>`), '    </AudioMap>'];
}

function itemLine(item: Item): string {
  return `    <Item${attributes(item)}/>`;
}

function attributes(values: Readonly<Record<string, string | number | boolean | undefined>>): string {
  return Object.entries(values)
    .map(([name, value]) => (value === undefined ? '' : ` ${name}="${xmlAttribute(String(value))}"`))
    .join('');
}
