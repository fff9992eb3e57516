import Type, { type Static } from 'typebox';
import Value from 'typebox/value';

/** Present item of a scheduled channel: the report of its task. Times in milliseconds. */
const ScheduleReport = Type.Object({
  /** Scheduled program with its begin and end; absent when there is none. */
  program: Type.Optional(
    Type.Object({
      name: Type.String(),
      scheduled: Type.Number(),
      ends: Type.Optional(Type.Number()),
      repeat: Type.Boolean(),
    }),
  ),
  /** Playing item; `position` since it began. */
  item: Type.Optional(
    Type.Object({ url: Type.String(), start: Type.Number(), duration: Type.Number(), position: Type.Number() }),
  ),
  fallback: Type.Boolean(),
});
export type ScheduleReport = Static<typeof ScheduleReport>;

/** undefined for no report, or a report of another version. */
export function readScheduleReport(json: unknown): ScheduleReport | undefined {
  return Value.Check(ScheduleReport, json) ? json : undefined;
}
