import type { Lua } from './lua.ts';
import { runPlan } from './model-run.ts';
import { planOf, type Plan } from './plan.ts';

/** @returns how the run of that seed went wrong: with as few actions as it takes, and all that happened; undefined when it did not */
export async function failureOf(seed: number, lua: Lua): Promise<string | undefined> {
  const plan = planOf(seed);
  if ((await runPlan(plan, { lua })) === undefined) return undefined;
  const least = await reduced(plan, async (part) => (await runPlan(part, { lua })) !== undefined);
  const lines: string[] = [];
  const wrong = await runPlan(least, { lua, onLine: (line) => lines.push(line) });
  const how = `${least.actions.length} of the ${plan.actions.length} actions of seed ${seed}, with ${plan.nodes} nodes`;
  return [...lines, '', `${wrong}`, `by ${how}: KILN_SEED=${seed} repeats it`].join('\n');
}

/** Leaves out actions, many at a time and then one, as long as the plan fails without them. */
async function reduced(plan: Plan, fails: (plan: Plan) => Promise<boolean>): Promise<Plan> {
  let { actions } = plan;
  for (let size = Math.ceil(actions.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < actions.length;) {
      const fewer = [...actions.slice(0, at), ...actions.slice(at + size)];
      if (await fails({ ...plan, actions: fewer })) actions = fewer;
      else at += size;
    }
  }
  return { ...plan, actions };
}
