import { kilnError } from '../errors.ts';
import {
  demandParameters,
  readFlag,
  readTaskId,
  readTaskStream,
  readText,
  type TaskRequest,
} from '../tasks/request.ts';
import { parseSchedule } from './schedule.ts';
import type { RecordSpec } from './spec.ts';

export const SEGMENTATION_RULES = ['discontinuity', 'continuity'] as const;

/**
 * Checks a recording request, with the error texts of docs/compatibility.md#recordings-pushes-dumps.
 * @throws taskInvalid
 */
export function readRecord(request: TaskRequest): { readonly id: string; readonly spec: RecordSpec } {
  demandParameters(request, ['id', 'stream.name']);
  const { interval, segmentationRule: rule = SEGMENTATION_RULES[0] } = request;
  const schedule = readText(request, 'schedule');
  const hasInterval = interval !== undefined && interval !== null && interval !== 0;
  if (hasInterval && schedule !== undefined)
    throw kilnError('taskInvalid', '[Interval] and [Schedule] cannot be used at the same time');
  if (schedule !== undefined && parseSchedule(schedule) === undefined)
    throw kilnError('taskInvalid', 'Invalid [schedule] parameter');
  if (hasInterval && !(Number.isSafeInteger(interval) && (interval as number) > 0))
    throw kilnError('taskInvalid', '[interval] must be a whole number of milliseconds, above 0');
  const segmentationRule = SEGMENTATION_RULES.find((one) => typeof rule === 'string' && one === rule.toLowerCase());
  if (segmentationRule === undefined)
    throw kilnError('taskInvalid', `[segmentationRule] must be one of ${SEGMENTATION_RULES.join(', ')}`);
  const filePath = readText(request, 'filePath');
  const infoPath = readText(request, 'infoPath');
  const metadata = readText(request, 'metadata');
  const standby = readFlag(request, 'standby');
  const spec = {
    stream: readTaskStream(request),
    segmentationRule,
    createdTime: Date.now(),
    ...(hasInterval && { interval: interval as number }),
    ...(schedule !== undefined && { schedule }),
    ...(filePath !== undefined && { filePath }),
    ...(infoPath !== undefined && { infoPath }),
    ...(metadata !== undefined && { metadata }),
    ...(standby !== undefined && { standby }),
  };
  return { id: readTaskId(request), spec };
}
