import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { dashboard } from './dashboard.ts';
import { DASHBOARDS } from './panels.ts';
import { rulesFile } from './rules-file.ts';

/**
 * Writes the dashboards and the alerts anew: `node grafana/generate/main.ts && npm run format`. With `--docs URL` the links of the
 * alerts lead there.
 */
const { docs } = parseArgs({ options: { docs: { type: 'string' } } }).values;
const folder = join(import.meta.dirname, '..');
writeFileSync(join(folder, 'prometheus/kiln.rules.yml'), rulesFile(docs));
for (const [name, spec] of Object.entries(DASHBOARDS)) {
  const file = join(folder, 'dashboards', `${name}.json`);
  writeFileSync(file, `${JSON.stringify(dashboard(spec), undefined, 2)}\n`);
}
