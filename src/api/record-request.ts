import Type from 'typebox';
import { kilnError } from '../errors.ts';
import { parseSchedule } from '../tasks/record/schedule.ts';
import type { RecordSpec } from '../tasks/record/spec.ts';
import { creationOf, readTaskId, readTaskStream, readText, TaskStreamBody } from './task-actions.ts';

const RULES = ['discontinuity', 'continuity'] as const;

/** The body in the description of the API; `readRecord` checks it, in words of its own. */
export const RecordCreation = Type.Object({
  id: Type.String({ description: 'unique in the application' }),
  stream: TaskStreamBody,
  interval: Type.Optional(Type.Integer({ description: 'milliseconds of media per file', minimum: 1 })),
  schedule: Type.Optional(Type.String({ description: '`second minute hour`, each `*`, a number or `*/number`' })),
  segmentationRule: Type.Optional(Type.Enum([...RULES])),
  filePath: Type.Optional(Type.String()),
  infoPath: Type.Optional(Type.String()),
  metadata: Type.Optional(Type.String()),
});

/**
 * Checks the body of :startRecord, with the texts of facts/01-rest-api.md section 8.
 * @throws bodyNotObject, taskInvalid
 */
export function readRecord(given: unknown): { readonly id: string; readonly spec: RecordSpec } {
  const body = creationOf(given, ['id', 'stream.name']);
  const { interval, segmentationRule: rule = RULES[0] } = body;
  const schedule = readText(body, 'schedule');
  const hasInterval = interval !== undefined && interval !== null && interval !== 0;
  if (hasInterval && schedule !== undefined)
    throw kilnError('taskInvalid', '[Interval] and [Schedule] cannot be used at the same time');
  if (schedule !== undefined && parseSchedule(schedule) === undefined)
    throw kilnError('taskInvalid', 'Invalid [schedule] parameter');
  if (hasInterval && !(Number.isSafeInteger(interval) && (interval as number) > 0))
    throw kilnError('taskInvalid', '[interval] must be a whole number of milliseconds, above 0');
  const segmentationRule = RULES.find((one) => typeof rule === 'string' && one === rule.toLowerCase());
  if (segmentationRule === undefined)
    throw kilnError('taskInvalid', `[segmentationRule] must be one of ${RULES.join(', ')}`);
  const filePath = readText(body, 'filePath');
  const infoPath = readText(body, 'infoPath');
  const metadata = readText(body, 'metadata');
  const spec = {
    stream: readTaskStream(body),
    segmentationRule,
    createdTime: Date.now(),
    ...(hasInterval && { interval: interval as number }),
    ...(schedule !== undefined && { schedule }),
    ...(filePath !== undefined && { filePath }),
    ...(infoPath !== undefined && { infoPath }),
    ...(metadata !== undefined && { metadata }),
  };
  return { id: readTaskId(body), spec };
}
