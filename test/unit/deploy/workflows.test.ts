import { globSync } from 'node:fs';
import { registerHooks } from 'node:module';
import test from 'ava';
import { parse } from 'yaml';
import { read, ROOT } from './support.ts';

// the package imports its schema as bundlers allow, without saying that it is JSON
registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith('.json') ? { ...context, importAttributes: { type: 'json' } } : context),
});
const { NoOperationTraceWriter, parseWorkflow } = await import('@actions/workflow-parser');

/** Faults by GitHub's schema of workflows. */
function faults(name: string, content: string): string[] {
  const { context } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
  return context.errors.getErrors().map(({ message }) => message);
}

const WORKFLOWS = globSync('.github/workflows/*.yml', { cwd: ROOT }).toSorted();

test('workflows are valid by the schema of GitHub', (t) => {
  t.deepEqual(
    WORKFLOWS.map((file) => file.replace('.github/workflows/', '')),
    ['check.yml', 'image.yml', 'test.yml'],
  );
  for (const file of WORKFLOWS) t.deepEqual(faults(file, read(file)), [], file);
});

test('invalid workflows are found', (t) => {
  for (const [right, wrong] of [
    ['timeout-minutes: 30', 'timeout-minute: 30'],
    ['contents: read', 'contents: see'],
    ['runs-on: ubuntu-latest', 'needs: [other]'],
    ['${{ github.ref }}', '${{ git.ref }}'],
  ] as const)
    t.not(faults('check.yml', read('.github/workflows/check.yml').replace(right, wrong)).length, 0, wrong);
});

test('each forge runs .ci/run', (t) => {
  for (const file of ['.github/workflows/check.yml', '.github/workflows/test.yml', '.gitlab-ci.yml'])
    t.regex(read(file), /(?:run|script): \.ci\/run( check)?$/m);
});

test('forms and settings of the forges can be read', (t) => {
  for (const file of globSync('.github/ISSUE_TEMPLATE/*.yml', { cwd: ROOT }))
    t.notThrows(() => parse(read(file)), file);
  t.notThrows(() => JSON.parse(read('renovate.json')) as unknown);
});
