import Type, { type Static } from 'typebox';
import { localTime } from '../lib/local-time.ts';
import { describeProblem } from '../channels/schedule-alerts.ts';
import type { ChannelGuide, Span } from '../channels/guides.ts';
import type { GuideProblem } from '../channels/scheduled/guide-problems.ts';
import type { GuideEntry } from '../channels/scheduled/guide.ts';

const Problem = Type.Object({
  type: Type.String({ description: 'gap, overlap or unreadable' }),
  begins: Type.String(),
  ends: Type.Optional(Type.String()),
  program: Type.Optional(Type.String()),
  url: Type.Optional(Type.String()),
  description: Type.String(),
});

/** Notes for an operator on an accepted schedule. */
export const ScheduleNotes = Type.Object({
  problems: Type.Array(Problem, { description: 'of the next 24 hours' }),
  until: Type.Optional(
    Type.String({
      description: 'recurring events of the uploaded calendar are followed until then: upload it again before',
    }),
  ),
});

/** @param until milliseconds since the epoch */
export function scheduleNotes(
  problems: readonly GuideProblem[],
  until: number | undefined,
): Static<typeof ScheduleNotes> {
  return { problems: problems.map(shownProblem), ...(until !== undefined && { until: localTime(until) }) };
}

/** Query for the problems of an accepted schedule. */
export const AcceptedQuery = Type.Object({
  problems: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      description: 'true: the answer has what should be mended of the next 24 hours, in `response`; false by default',
    }),
  ),
});

/** Time span of a guide; times as in ISO 8601. */
export const GuideQuery = Type.Object({
  from: Type.Optional(Type.String({ description: 'now by default' })),
  to: Type.Optional(Type.String({ description: '24 hours after `from` by default' })),
});

/** Future items of a scheduled channel. */
export const ScheduleGuide = Type.Object({
  from: Type.String(),
  to: Type.String(),
  entries: Type.Array(
    Type.Object({
      type: Type.String({ description: 'item; fallback, offair: nothing is scheduled' }),
      begins: Type.String(),
      ends: Type.Optional(Type.String({ description: 'absent: until something else is scheduled' })),
      program: Type.Optional(Type.Object({ name: Type.String(), scheduled: Type.String(), repeat: Type.Boolean() })),
      item: Type.Optional(
        Type.Object({
          url: Type.String(),
          index: Type.Integer({ description: 'in its program, from 0' }),
          position: Type.Number({ description: 'where in the file it begins; milliseconds' }),
          unreadable: Type.Boolean({ description: 'something else plays in its place' }),
        }),
      ),
    }),
  ),
  unmeasured: Type.Optional(
    Type.Integer({ description: 'files whose length is not known yet: what follows them is not exact; ask again' }),
  ),
  truncated: Type.Boolean({ description: 'more entries follow: ask for a span that begins where the last one ends' }),
  ...ScheduleNotes.properties,
});

/** @param until as in `scheduleNotes` */
export function scheduleGuide(
  { entries, isCut, problems, unmeasured }: ChannelGuide,
  { from, to }: Span,
  until: number | undefined,
): Static<typeof ScheduleGuide> {
  return {
    from: localTime(from),
    to: localTime(to),
    entries: entries.map(shownEntry),
    ...(unmeasured > 0 && { unmeasured }),
    truncated: isCut,
    ...scheduleNotes(problems, until),
  };
}

function shownProblem(problem: GuideProblem): Static<typeof Problem> {
  const { begins, ends, ...what } = problem;
  return { ...what, ...shownTimes({ begins, ends }), description: describeProblem(problem) };
}

function shownEntry({ type, program, item, ...times }: GuideEntry) {
  const shownProgram = program && { ...program, scheduled: localTime(program.scheduled) };
  return { type, ...shownTimes(times), ...(shownProgram && { program: shownProgram }), ...(item && { item }) };
}

function shownTimes({ begins, ends }: { readonly begins: number; readonly ends?: number | undefined }) {
  return { begins: localTime(begins), ...(ends !== undefined && { ends: localTime(ends) }) };
}
