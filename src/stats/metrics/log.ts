import { EVENTS } from '../../log/events.ts';
import { logCounts } from '../../log/log.ts';
import { counter, type Family, type Sample } from './family.ts';

const LEVELS = ['info', 'warn', 'error', 'fatal'];

/** Metrics of the log, including lines that were dropped because they were not read in time. */
export function logFamilies({ lines, events, faults } = logCounts): Family[] {
  return [
    counter('kiln_log_lines_total', 'Lines of the log, by level.', () =>
      LEVELS.map((level) => ({ labels: { level }, value: lines.get(level) ?? 0 })),
    ),
    counter('kiln_events_total', "Main events of the log, by the id that is in the field 'event'.", () =>
      (Object.keys(EVENTS) as (keyof typeof EVENTS)[]).map((event) => {
        return { labels: { event }, value: events.get(event) ?? 0 };
      }),
    ),
    counter(
      'kiln_faults_total',
      'Faults that come with packets, such as malformed ones, by the module that counts them.',
      () => from('module', faults),
    ),
  ];
}

function from(label: string, counts: ReadonlyMap<string, number>): Sample[] {
  return Array.from(counts, ([name, value]) => ({ labels: { [label]: name }, value }));
}
