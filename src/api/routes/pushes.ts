import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import type { ClusterTasks, TaskRow } from '../../tasks/cluster-tasks.ts';
import { asJson } from '../../lib/as-json.ts';
import { PUSH } from '../../pushing/kind.ts';
import { readPush } from '../../pushing/request.ts';
import { readTaskId } from '../../tasks/request.ts';
import { TaskExistsError } from '../../tasks/tasks.ts';
import { shown } from '../config-schema.ts';
import { answers, objectOf, ok } from '../envelope.ts';
import { ApplicationPath, findApplication } from '../lookup.ts';
import { PushTask, pushTask } from '../requests/push-request.ts';
import { creationOf, namedTask } from '../requests/task-actions.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app(^[^:]+$)';
/** A push is defined in the store, and begins on the node of its stream: no step takes longer. */
const WITHIN_MS = 5000;

/**
 * Pushes of an application's streams to other servers, on whichever node they run.
 * @param fetch pulls a stream that no node has, if an origin is configured for it
 */
export function pushRoutes(
  registry: Registry,
  tasks: ClusterTasks,
  fetch: (application: Application, stream: string) => void,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    const creation = {
      params: ApplicationPath,
      body: shown('PushCreation'),
      response: answers(PushTask),
      summary: 'Push a stream to another server',
    };
    app.post(`${BASE}::startPush`, { schema: creation }, async ({ params, body }) => {
      const application = findPushing(registry, params);
      const { id, spec } = readPush(objectOf(body), params);
      const name = { kind: PUSH, vhost: params.vhost, app: params.app, id };
      const definition = { spec: asJson(spec), persistent: true, stored: false };
      try {
        await tasks.create(name, definition.spec, { persistent: true, withinMs: WITHIN_MS });
      } catch (error) {
        if (!(error instanceof TaskExistsError)) throw error;
        throw kilnError('pushExists');
      }
      fetch(application, spec.stream.name);
      return ok(shownPush({ name, definition, state: 'waiting', report: undefined }));
    });

    const removal = {
      params: ApplicationPath,
      body: shown('TaskId'),
      response: answers(PushTask),
      summary: 'Stop a push',
    };
    app.post(`${BASE}::stopPush`, { schema: removal }, async ({ params, body }) => {
      const application = findPushing(registry, params);
      const id = readTaskId(creationOf(body, ['id']));
      const row = (await tasks.list(PUSH, application)).find(({ name }) => name.id === id);
      if (row === undefined || !(await tasks.remove(row.name)))
        throw kilnError('pushNotFound', id, params.vhost, params.app);
      return ok({ ...shownPush(row), state: 'stopping' });
    });

    const list = { params: ApplicationPath, response: answers(Type.Array(PushTask)), summary: 'List the pushes' };
    const all = async (application: Application, body: unknown) => {
      const id = namedTask(body);
      const rows = await tasks.list(PUSH, application);
      return ok(rows.filter(({ name }) => id === undefined || name.id === id).flatMap((row) => pushTask(row) ?? []));
    };
    const withBody = { ...list, body: shown('TaskChoice') };
    app.post(`${BASE}::pushes`, { schema: withBody }, ({ params, body }) =>
      all(findApplication(registry, params), body),
    );
    app.get(`${BASE}::pushes`, { schema: list }, ({ params }) => all(findApplication(registry, params), undefined));
  };
}

/** @throws vhostNotFound, applicationNotFound, also when the application does not push */
function findPushing(registry: Registry, params: { readonly vhost: string; readonly app: string }): Application {
  const application = findApplication(registry, params);
  if (application.config.publishers.push === undefined)
    throw kilnError('applicationNotFound', params.vhost, params.app);
  return application;
}

/** @throws callUnknown for a definition of another version: a push that this node cannot show is not stopped */
function shownPush(row: TaskRow) {
  const task = pushTask(row);
  if (task === undefined) throw kilnError('callUnknown');
  return task;
}
