import { readFileSync, writeFileSync } from 'node:fs';
import { argv, exit, stdout } from 'node:process';
import { EVENTS } from '../../src/log/events.ts';
import { configurationReference } from './configuration-reference.ts';
import { metricsReference } from './metrics-reference.ts';

/** Documents that are made of what the code says of itself. */
const DOCUMENTS: Readonly<Record<string, () => string>> = {
  'docs/configuration.md': configurationReference,
  'docs/log-events.md': eventReference,
  'docs/metrics-reference.md': metricsReference,
};

function eventReference(): string {
  return [
    '# Events of the log',
    '',
    'Lines of the log that tell of a main event have its id in the field `event`. Ids are stable, so alarms and searches can go by',
    'them; texts may change. The newest 500 of each node are at `GET /v1/cluster/events`, too. Made from `src/log/events.ts`',
    '(`npm run reference`).',
    '',
    '| event | when |',
    '| --- | --- |',
    ...Object.entries(EVENTS).map(([id, when]) => `| \`${id}\` | ${when.replaceAll('|', '\\|')} |`),
    '',
  ].join('\n');
}

let status = 0;
for (const [file, make] of Object.entries(DOCUMENTS)) {
  const text = make();
  if (argv[2] === '--write') writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    stdout.write(`${file} is not what the code says of itself: npm run reference writes it\n`);
    status = 1;
  }
}
exit(status);
