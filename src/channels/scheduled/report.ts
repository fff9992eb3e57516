import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** What a scheduled channel plays: the report of its task. Times in milliseconds. */
const ScheduleReport = Type.Object({
  /** The program that is scheduled, and when it begins and ends; absent when none is. */
  program: Type.Optional(
    Type.Object({
      name: Type.String(),
      scheduled: Type.Number(),
      ends: Type.Optional(Type.Number()),
      repeat: Type.Boolean(),
    }),
  ),
  /** What plays; `position` since it began. */
  item: Type.Optional(
    Type.Object({ url: Type.String(), start: Type.Number(), duration: Type.Number(), position: Type.Number() }),
  ),
  /** The item is one of the fallback program. */
  fallback: Type.Boolean(),
});
export type ScheduleReport = Static<typeof ScheduleReport>;

/** undefined for none, and for what a node of another version tells. */
export function readScheduleReport(json: unknown): ScheduleReport | undefined {
  return Value.Check(ScheduleReport, json) ? json : undefined;
}
