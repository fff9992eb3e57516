import test, { type ExecutionContext } from 'ava';
import { multiplexChannel } from '../../../src/api/multiplex-channel.ts';
import { scheduledChannel } from '../../../src/api/scheduled-channel.ts';
import { checkMultiplex } from '../../../src/channels/multiplex/check.ts';
import { readMultiplexSpec } from '../../../src/channels/multiplex/spec.ts';
import type { Checked } from '../../../src/channels/sources/definition-form.ts';
import { checkSchedule } from '../../../src/channels/scheduled/check.ts';
import { readScheduleSpec, type ScheduleSpec } from '../../../src/channels/scheduled/spec.ts';
import { Random } from '../../soak/random.ts';
import { MULTIPLEX, mutated, programsGiven, SCHEDULE } from '../../support/channels/odd-channels.ts';

const COUNT = 10_000;
const SEED = Number(process.env.KILN_SEED ?? 2);

interface Named<S> {
  readonly name: string;
  readonly spec: S;
}

/** @param again the body that a definition is shown as */
function fuzz<S>(
  t: ExecutionContext,
  body: unknown,
  check: (json: unknown) => Checked<Named<S>>,
  read: (json: unknown) => S | undefined,
  again: (named: Named<S>) => unknown,
): void {
  const random = new Random(SEED);
  let accepted = 0;
  for (let n = 0; n < COUNT; n++) {
    const given = mutated(random, body);
    // as it comes over HTTP, and as it is stored
    const checked = check(JSON.parse(JSON.stringify(given)));
    if (!checked.ok) {
      const unnamed = checked.problems.filter(({ path, message }) => path.length === 0 || message === '');
      if (checked.problems.length === 0 || unnamed.length > 0)
        t.fail(`${JSON.stringify(given)}: ${JSON.stringify(unnamed)}`);
      continue;
    }
    accepted += 1;
    const stored: unknown = JSON.parse(JSON.stringify(checked.value.spec));
    const second = check(again(checked.value));
    if (read(stored) === undefined || !second.ok) return t.fail(JSON.stringify(given));
    t.deepEqual(JSON.parse(JSON.stringify(second.value)), { name: checked.value.name, spec: stored });
  }
  t.log(`${accepted} of ${COUNT} accepted`);
  t.true(accepted > COUNT / 10 && accepted < (COUNT * 9) / 10);
}

test(`any definition of a scheduled channel is refused, or reads back equal: seed ${SEED}`, (t) => {
  const again = ({ name, spec }: Named<ScheduleSpec>) => ({
    ...scheduledChannel(name, spec, undefined),
    ...programsGiven(spec),
  });
  const now = Date.parse('2026-01-01T00:00:00Z');
  const check = (json: unknown) => checkSchedule(json, now);
  fuzz(t, SCHEDULE, check, readScheduleSpec, again);
});

test(`any definition of a multiplex channel is refused, or reads back equal: seed ${SEED}`, (t) => {
  fuzz(t, MULTIPLEX, checkMultiplex, readMultiplexSpec, ({ name, spec }) => multiplexChannel(name, spec, undefined));
});
