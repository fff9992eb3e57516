/**
 * The rules of hadolint (https://github.com/hadolint/hadolint#rules) for the instructions that Kiln's Dockerfiles use.
 * Two are left out. DL3008 wants versions of Debian's packages, of which a stable release keeps only the newest, with its
 * mends; DL3059 wants RUNs in one, which are cached one by one.
 */

interface Instruction {
  readonly name: string;
  /** Flags, such as `--from=build`. */
  readonly flags: readonly string[];
  readonly rest: string;
}

type Rule = (stages: readonly Stage[]) => boolean;

interface Stage {
  readonly from: string;
  readonly alias: string | undefined;
  readonly instructions: readonly Instruction[];
}

const SHELL_PIPEFAIL = /"-o",\s*"pipefail"/;
const every = (stages: readonly Stage[], name: string, holds: (one: Instruction, stage: Stage) => boolean) =>
  stages.every((stage) => stage.instructions.filter((one) => one.name === name).every((one) => holds(one, stage)));
const commands = (stages: readonly Stage[]): string[][] =>
  stages.flatMap(({ instructions }) =>
    instructions
      .filter(({ name }) => name === 'RUN')
      .flatMap(({ rest }) => rest.split(/&&|\|\||;|\|/).map((command) => command.trim().split(/\s+/))),
  );
const aptInstalls = (stages: readonly Stage[]) =>
  commands(stages).filter(([program, ...args]) => program === 'apt-get' && args.includes('install'));
const calls = (stages: readonly Stage[], ...programs: string[]) =>
  commands(stages).some(([program = '']) => programs.includes(program));
const isJson = (text: string) => /^\[.*\]$/.test(text);

const RULES: Readonly<Record<string, Rule>> = {
  'DL3000 absolute WORKDIR': (stages) => every(stages, 'WORKDIR', ({ rest }) => rest.startsWith('/')),
  'DL3002 the last USER is not root': (stages) =>
    !['root', '0', undefined].includes(
      stages
        .at(-1)
        ?.instructions.findLast(({ name }) => name === 'USER')
        ?.rest.split(':')[0],
    ),
  'DL3003 WORKDIR instead of cd': (stages) => !calls(stages, 'cd'),
  'DL3004 no sudo': (stages) => !calls(stages, 'sudo'),
  'DL3006, DL3007 each image has a tag that is not latest': (stages) =>
    stages.every(
      ({ from }, index) =>
        stages.slice(0, index).some(({ alias }) => alias === from) ||
        (/:[^/]+$/.test(from) && !from.endsWith(':latest')),
    ),
  'DL3009 lists of packages are deleted': (stages) =>
    every(stages, 'RUN', ({ rest }) => !rest.includes('apt-get update') || rest.includes('rm -rf /var/lib/apt/lists')),
  'DL3011 ports are from 1 to 65535': (stages) =>
    every(stages, 'EXPOSE', ({ rest }) =>
      rest.split(/[\s-]+/).every((port) => Number.parseInt(port, 10) > 0 && Number.parseInt(port, 10) < 65536),
    ),
  'DL3014 apt-get install -y': (stages) => aptInstalls(stages).every((args) => args.includes('-y')),
  'DL3015 apt-get install --no-install-recommends': (stages) =>
    aptInstalls(stages).every((args) => args.includes('--no-install-recommends')),
  'DL3020 COPY instead of ADD': (stages) => every(stages, 'ADD', () => false),
  'DL3021 COPY of several to a folder': (stages) =>
    every(stages, 'COPY', ({ rest }) => rest.split(/\s+/).length < 3 || rest.endsWith('/')),
  'DL3022 COPY --from names an earlier stage': (stages) =>
    every(stages, 'COPY', ({ flags }, stage) => {
      const from = flags.find((flag) => flag.startsWith('--from='))?.slice('--from='.length);
      return from === undefined || stages.slice(0, stages.indexOf(stage)).some(({ alias }) => alias === from);
    }),
  'DL3024 names of stages are unique': (stages) => {
    const aliases = stages.flatMap(({ alias }) => alias ?? []);
    return new Set(aliases).size === aliases.length;
  },
  'DL3025 CMD and ENTRYPOINT are JSON': (stages) =>
    ['CMD', 'ENTRYPOINT'].every((name) => every(stages, name, ({ rest }) => isJson(rest))),
  'DL3027 apt-get instead of apt': (stages) => !calls(stages, 'apt'),
  'DL3029 no platform but the one that is asked for': (stages) =>
    stages.every(({ from }) => !from.includes('--platform')),
  'DL3045 COPY to a relative path after WORKDIR': (stages) =>
    every(
      stages,
      'COPY',
      ({ rest }, { instructions }) =>
        /^[/$]/.test(rest.split(/\s+/).at(-1) ?? '') || instructions.some(({ name }) => name === 'WORKDIR'),
    ),
  'DL3047, DL4001 nothing is fetched by hand': (stages) => !calls(stages, 'wget', 'curl'),
  'DL4000 no MAINTAINER': (stages) => every(stages, 'MAINTAINER', () => false),
  'DL4003, DL4004 one CMD and one ENTRYPOINT a stage': (stages) =>
    stages.every(({ instructions }) =>
      ['CMD', 'ENTRYPOINT'].every((wanted) => instructions.filter(({ name }) => name === wanted).length < 2),
    ),
  'DL4006 pipes have pipefail': (stages) =>
    every(
      stages,
      'RUN',
      ({ rest }, { instructions }) =>
        !/[^|]\|[^|]/.test(rest) ||
        instructions.some(({ name, rest: shell }) => name === 'SHELL' && SHELL_PIPEFAIL.test(shell)),
    ),
};

/** Rules that a Dockerfile breaks, as `number what`. */
export function brokenRules(text: string): string[] {
  const stages = stagesOf(text);
  return Object.entries(RULES).flatMap(([rule, holds]) => (holds(stages) ? [] : [rule]));
}

function stagesOf(text: string): Stage[] {
  const stages: (Stage & { readonly instructions: Instruction[] })[] = [];
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '');
  for (const line of lines) {
    const [, name = '', all = ''] = /^([A-Z]+)\s+(.*?)\s*$/.exec(line) ?? [];
    if (name === '') throw new Error(`not an instruction: ${line}`);
    const flags = /^(?:--\S+\s+)*/.exec(all)?.[0] ?? '';
    if (name === 'FROM') {
      const [from = '', alias] = all.split(/\s+as\s+/i);
      stages.push({ from, alias, instructions: [] });
    } else {
      stages.at(-1)?.instructions.push({ name, flags: flags.split(/\s+/), rest: all.slice(flags.length) });
    }
  }
  return stages;
}
