import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '../../support/network/ports.ts';
import { serverXml } from '../../support/server/kiln.ts';
import { median } from '../../support/load/statistics.ts';
import { timed } from '../start.ts';
import type { Comparison } from './comparison.ts';
import { figure, type Figure } from './figures.ts';
import { environmentIn } from './checkout.ts';

const STARTS = 3;
const COMMANDS = [
  { name: 'npm start', program: 'npm', before: ['start', '--'] },
  { name: 'deploy/start', program: 'deploy/start', before: [] },
];

/** From the command to the first connection that RTMP takes. One start more, which compiles, comes before those that count. */
export const start: Comparison = {
  name: 'start',
  run: async ({ folder, root }) => {
    const [rtmp = 0, http = 0, api = 0, first = 0, last = 0] = freePorts(5);
    const file = join(folder, 'compared.xml');
    await writeFile(file, serverXml({ rtmp, http, api, ice: [first, last] }, { application: '' }));
    const figures: Figure[] = [];
    for (const { name, program, before } of COMMANDS) {
      const seconds: number[] = [];
      for (let i = 0; i <= STARTS; i++) {
        const options = { cwd: root, env: environmentIn(root) };
        const server = await timed(program, [...before, '--config', file], rtmp, options);
        await server.stop();
        if (i > 0) seconds.push(server.ms / 1000);
      }
      figures.push(figure(`${name} to first accepted connection`, 's', 3, median(seconds)));
    }
    return figures;
  },
};
