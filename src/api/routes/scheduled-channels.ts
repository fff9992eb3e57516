import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyBaseLogger } from 'fastify';
import Type from 'typebox';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { SCHEDULED } from '../../channels/channel-kind.ts';
import type { Channels } from '../../channels/channels.ts';
import type { Guides } from '../../channels/guides.ts';
import { checkSchedule, checkSchedulePatch } from '../../channels/scheduled/check.ts';
import type { GuideProblem } from '../../channels/scheduled/guide-problems.ts';
import { readGuideSpan } from '../../channels/scheduled/guide.ts';
import { ChannelPath, demandChannels, findForChannels, findOfChannel } from '../channel-path.ts';
import { checkedChannel } from '../requests/channel-request.ts';
import { shown } from '../config-schema.ts';
import { answers, created, done, ErrorBody, noPayload, objectOf, ok } from '../envelope.ts';
import { ApplicationPath } from '../lookup.ts';
import { readScheduleChange, UPLOAD_TYPES } from '../requests/schedule-change.ts';
import {
  AcceptedQuery,
  GuideQuery,
  ScheduleGuide,
  scheduleGuide,
  ScheduleNotes,
  scheduleNotes,
} from '../schedule-guide.ts';
import { ScheduledChannel, scheduledChannel } from '../scheduled-channel.ts';

const BASE = '/v1/vhosts/:vhost/apps/:app/scheduledChannels';

/** Channels that play files and streams by a schedule, on whichever node they run. */
export function scheduledChannelRoutes(
  registry: Registry,
  channels: Channels,
  guides: Guides,
): FastifyPluginAsyncTypebox {
  /** Problems of a present channel, as far as they are known, and until when its recurring events are followed. */
  const notes = async (application: Application, name: string, log: FastifyBaseLogger, until?: number) => {
    const now = Date.now();
    let problems: readonly GuideProblem[] = [];
    try {
      const { spec } = await channels.find(SCHEDULED, application, name);
      problems = (await guides.of(application, name, spec, { from: now, to: now + 1 })).problems;
    } catch (error) {
      log.warn({ err: error, channel: name }, 'the schedule of the channel could not be checked for problems');
    }
    return scheduleNotes(problems, until);
  };
  return async (app) => {
    const list = {
      params: ApplicationPath,
      response: answers(Type.Array(Type.String())),
      summary: 'List the scheduled channels',
    };
    app.get(BASE, { schema: list }, async ({ params }) =>
      ok(await channels.names(SCHEDULED, findForChannels(registry, params, SCHEDULED))),
    );

    const Accepted = Type.Object({ ...ErrorBody.properties, response: Type.Optional(ScheduleNotes) });
    const response = { 201: Accepted, '4xx': ErrorBody, '5xx': ErrorBody };
    const body = shown('ScheduledChannelCreation');
    const querystring = AcceptedQuery;
    const creation = { params: ApplicationPath, querystring, body, response, summary: 'Create a scheduled channel' };
    app.post(BASE, { schema: creation }, async ({ params, query, body, log }, reply) => {
      const application = findForChannels(registry, params, SCHEDULED);
      const { name, spec } = checkedChannel(checkSchedule(objectOf(body), Date.now()));
      await channels.create(SCHEDULED, application, name, spec);
      reply.code(201);
      if (query.problems !== 'true') return created;
      return { ...created, response: await notes(application, name, log) };
    });

    const read = { params: ChannelPath, response: answers(ScheduledChannel), summary: 'Show a scheduled channel' };
    app.get(`${BASE}/:channel`, { schema: read }, async ({ params }) => {
      const { name, spec, report } = await channels.find(
        SCHEDULED,
        findOfChannel(registry, params, SCHEDULED),
        params.channel,
      );
      return ok(scheduledChannel(name, spec, report));
    });

    const change = {
      params: ChannelPath,
      querystring,
      body: shown('ScheduledChannelChange'),
      response,
      summary: 'Change the programs of a scheduled channel',
    };
    app.patch(
      `${BASE}/:channel`,
      { schema: change, config: { textTypes: UPLOAD_TYPES } },
      async ({ params, query, body, headers, log }, reply) => {
        const application = findOfChannel(registry, params, SCHEDULED);
        const { change, until } = readScheduleChange(body, headers['content-type']);
        await channels.change(SCHEDULED, application, params.channel, (spec) =>
          checkedChannel(checkSchedulePatch(spec, change, Date.now(), until)),
        );
        reply.code(201);
        // Kiln's own: elsewhere bodies are JSON, and answers have no `response` (docs/compatibility.md#channels)
        if (query.problems !== 'true' && typeof body !== 'string') return created;
        return { ...created, response: await notes(application, params.channel, log, until) };
      },
    );

    const guide = {
      params: ChannelPath,
      querystring: GuideQuery,
      response: answers(ScheduleGuide),
      summary: 'Show what a scheduled channel will play',
    };
    app.get(`${BASE}/:channel/guide`, { schema: guide }, async ({ params, query: { from, to } }) => {
      const application = findOfChannel(registry, params, SCHEDULED);
      const span = readGuideSpan(plus(from), plus(to), Date.now());
      if (!span.ok) throw kilnError('channelInvalid', span.problem);
      const { name, spec } = await channels.find(SCHEDULED, application, params.channel);
      return ok(
        scheduleGuide(await guides.of(application, name, spec, { from: span.from, to: span.to }), span, spec.until),
      );
    });

    const removal = { params: ChannelPath, response: noPayload, summary: 'Delete a scheduled channel' };
    app.delete(`${BASE}/:channel`, { schema: removal }, async ({ params }) => {
      const application = findOfChannel(registry, params);
      if (await channels.remove(SCHEDULED, application, params.channel)) return done;
      demandChannels(application, SCHEDULED);
      throw kilnError('channelNotFound');
    });
  };
}

/** Zone of a time, whose `+` a query decodes as a space. */
function plus(time: string | undefined): string | undefined {
  return time?.replace(' ', '+');
}
