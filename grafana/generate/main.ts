import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboard } from './dashboard.ts';
import { DASHBOARDS } from './panels.ts';

/** Writes grafana/dashboards anew: `node grafana/generate/main.ts && npm run format`. */
for (const [name, spec] of Object.entries(DASHBOARDS)) {
  const file = join(import.meta.dirname, '../dashboards', `${name}.json`);
  writeFileSync(file, `${JSON.stringify(dashboard(spec), undefined, 2)}\n`);
}
