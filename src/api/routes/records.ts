import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import { localTime } from '../../lib/local-time.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { Records, RecordTask } from '../../recording/records.ts';
import { readRecord } from '../../recording/request.ts';
import type { RecordReport } from '../../recording/spec.ts';
import { readTaskId } from '../../tasks/request.ts';
import { TrackStream } from '../../tasks/track-selection.ts';
import { shown } from '../config-schema.ts';
import { answers, objectOf, ok } from '../envelope.ts';
import { ApplicationPath, findApplication } from '../lookup.ts';
import { creationOf, namedTask } from '../requests/task-actions.ts';

const APP = '/v1/vhosts/:vhost/apps/:app(^[^:]+$)';

const text = () => Type.Optional(Type.String());
const integer = () => Type.Optional(Type.Integer());

/** A recording task (docs/compatibility.md#recordings-pushes-dumps). */
const RecordInfo = Type.Object({
  app: Type.String(),
  createdTime: Type.String(),
  /** Seconds after which its finished files are deleted. */
  deleteAfter: integer(),
  filePath: text(),
  finishTime: text(),
  id: Type.String(),
  infoPath: text(),
  interval: integer(),
  isConfig: Type.Boolean(),
  /** Size of the application's finished files on a node, as in the configuration. */
  maxTotalSize: text(),
  metadata: text(),
  outputFilePath: text(),
  outputInfoPath: text(),
  /** Reason of the state `error`. */
  reason: text(),
  recordBytes: integer(),
  recordTime: integer(),
  schedule: text(),
  segmentationRule: Type.String(),
  sequence: integer(),
  standby: Type.Optional(Type.Boolean()),
  startTime: text(),
  state: Type.String(),
  stream: TrackStream,
  totalRecordBytes: integer(),
  totalRecordTime: integer(),
  vhost: Type.String(),
  warnings: Type.Optional(Type.Array(Type.String())),
});
export type RecordInfo = Static<typeof RecordInfo>;

/** Recordings of output streams: starts, stops and lists them, on any node. */
export function recordRoutes(registry: Registry, records: Records): FastifyPluginAsyncTypebox {
  return async (app) => {
    const params = ApplicationPath;
    const start = {
      params,
      body: shown('RecordCreation'),
      response: answers(RecordInfo),
      summary: 'Record an output stream',
    };
    app.post(`${APP}::startRecord`, { schema: start }, async ({ params: path, body }) => {
      const application = findApplication(registry, path);
      const { id, spec } = readRecord(objectOf(body));
      return ok(infoOf(await records.create(application, id, spec), application));
    });

    const stop = { params, body: shown('TaskId'), response: answers(RecordInfo), summary: 'Stop a recording' };
    app.post(`${APP}::stopRecord`, { schema: stop }, async ({ params: path, body }) => {
      const application = findApplication(registry, path);
      const id = readTaskId(creationOf(body, ['id']));
      return ok({ ...infoOf(await records.stop(application, id), application), state: 'stopping' });
    });

    const list = { params, response: answers(Type.Array(RecordInfo)), summary: 'List the recordings' };
    app.get(`${APP}::records`, { schema: list }, async ({ params: path }) => {
      const application = findApplication(registry, path);
      return ok((await records.list(application)).map((task) => infoOf(task, application)));
    });
    const chosen = { ...list, body: shown('TaskChoice') };
    app.post(`${APP}::records`, { schema: chosen }, async ({ params: path, body }) => {
      const application = findApplication(registry, path);
      return ok((await records.list(application, namedTask(body))).map((task) => infoOf(task, application)));
    });
  };
}

function infoOf({ name, spec, report, isConfigured }: RecordTask, { config }: Application): RecordInfo {
  const { deleteAfter, maxTotalSize } = config.publishers.file ?? {};
  const { createdTime, ...requested } = spec;
  const { state = 'ready', startTime, finishTime, warnings = [], reason } = report ?? {};
  const { outputFilePath, outputInfoPath } = report ?? {};
  return {
    id: name.id,
    vhost: name.vhost,
    app: name.app,
    state,
    isConfig: isConfigured,
    ...requested,
    createdTime: localTime(createdTime),
    ...(outputFilePath !== undefined && { outputFilePath }),
    ...(outputInfoPath !== undefined && { outputInfoPath }),
    ...(state !== 'ready' && countersOf(report)),
    ...(state !== 'ready' && startTime !== undefined && { startTime: localTime(startTime) }),
    ...(finishTime !== undefined && { finishTime: localTime(finishTime) }),
    ...(reason !== undefined && { reason }),
    ...(warnings.length > 0 && { warnings }),
    ...(deleteAfter !== undefined && { deleteAfter }),
    ...(maxTotalSize !== undefined && { maxTotalSize }),
  };
}

function countersOf(report: RecordReport | undefined) {
  if (report === undefined) return undefined;
  const { recordBytes, recordTime, totalRecordBytes, totalRecordTime, sequence } = report;
  return { recordBytes, recordTime, totalRecordBytes, totalRecordTime, sequence };
}
