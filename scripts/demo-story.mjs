// The story the scripted model plays in the demo. A prompt is matched by its own words, so it can be typed freely.

/** Files of the sample workspace. */
export const files = {
  'README.md': '# Paper boats\n\nNotes on folding boats that float.\n',
  'boat.txt': 'Fold a sheet in half.\nFold the corners to the middle.\nOpen it into a hat.\nPull the corners apart.\n',
  'old-draft.txt': 'An early draft that nobody needs.\n',
}

const edit = (file, from, to) => ({ name: 'edit', args: { file_path: file, old_string: from, new_string: to } })
const read = file => ({ name: 'read', args: { file_path: file } })
const write = (file, content) => ({ name: 'write', args: { file_path: file, content } })
const bash = (command, description) => ({ name: 'bash', args: { command, description } })

/** The turns, in the order of the tour. */
export const turns = [
  {
    prompt: 'Add a greeting',
    words: /greet|问候|你好/i,
    steps: [
      {
        text: 'I add a greeting file and mention it in the README.',
        tools: [write('greeting.txt', 'Hello, sailor!\n'), read('README.md')],
      },
      { tools: [edit('README.md', 'Notes on folding boats that float.', 'Notes on folding boats that float. Start with greeting.txt.')] },
      { text: 'There is a greeting now: greeting.txt, with a line about it in README.md.' },
    ],
  },
  {
    prompt: 'Make the steps shorter',
    words: /short|step|精简|步骤/i,
    steps: [
      { text: 'I read the steps first.', tools: [read('boat.txt')] },
      { tools: [write('boat.txt', 'Fold. Fold the corners. Open. Pull.\n')] },
      { text: 'boat.txt went from four lines to one. Too short? That is what rolling back is for.' },
    ],
  },
  {
    prompt: 'Clean up the folder',
    words: /clean|tidy|清理|整理/i,
    steps: [
      {
        text: 'I write a note and remove the old draft from the shell.',
        tools: [
          write('CHANGES.txt', 'Removed the old draft.\n'),
          bash('rm -f old-draft.txt', 'Remove the old draft'),
        ],
      },
      { text: 'old-draft.txt is gone and CHANGES.txt says so.' },
    ],
  },
]

const help = {
  name: 'help',
  steps: [{ text: `I only know the demo's story. Try one of these:\n\n${turns.map(turn => `- ${turn.prompt}`).join('\n')}` }],
}

export const scenarios = Object.fromEntries([...turns.map(turn => [turn.prompt, turn.steps]), [help.name, help.steps]])

/** Texts the host or the plugin adds to the conversation; they are no prompts. */
const notPrompts = /^(Current runtime context|\[)/

export function route(text) {
  if (notPrompts.test(text)) return undefined
  return turns.find(turn => turn.words.test(text))?.prompt ?? help.name
}

export const title = scenario => scenario === help.name ? 'Paper boats' : scenario

export const tour = `
A one-minute tour

  1. Type "${turns[0].prompt}" and wait for the answer. Then "${turns[1].prompt}", then "${turns[2].prompt}".
  2. Under the second answer click the arrow that points back ("Roll back to before turn 2").
     The dialog shows which turns leave the conversation and what happens to each file, also to old-draft.txt,
     which turn 3 removed with a shell command. Open a file to see its lines; take the tick away to leave it as it is.
  3. Confirm. boat.txt has its four lines again, CHANGES.txt is gone, turns 2 and 3 are one slim bar ("Show" lets you
     read them), and your prompt stands in the composer again. old-draft.txt, which the agent's rm removed, is back too.
  4. Click "Undo (opens a copy)" in the bar: the files are as they were before the rollback, and the whole conversation
     opens as a copy of the session.
  5. Open the tab "Checkpoints": every turn with what it changed. Or type /rollback and press Enter for a list of turns.

To see that your own edits survive: change a line of boat.txt in any editor before step 2.
`
