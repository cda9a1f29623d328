// The tasks of a VNF instance: each has a form, and a link in the instance if the VNF has it.

export interface Task {
  /** Its name in the path of the request, and in that of the form. */
  task: string;
  /** The link in the instance; '' for a task that each has. */
  link: string;
  name: string;
  text: string;
}

export const TASKS: Task[] = [
  { task: 'instantiate', link: 'instantiate', name: 'Instantiate', text: 'Makes its machines or objects.' },
  { task: 'scale', link: 'scale', name: 'Scale', text: 'Adds or removes parts, by steps of one aspect.' },
  { task: 'scale_to_level', link: 'scaleToLevel', name: 'Scale to level', text: 'Brings it to a size that the package names, or each aspect to a level.' },
  { task: 'heal', link: 'heal', name: 'Heal', text: 'Makes all of it again, or the parts that are chosen.' },
  { task: 'operate', link: 'operate', name: 'Start or stop', text: 'Starts or stops all of it, or the parts that are chosen.' },
  { task: 'change_ext_conn', link: 'changeExtConn', name: 'Change external connectivity', text: 'Connects it to other networks.' },
  { task: 'change_flavour', link: 'changeFlavour', name: 'Change flavour', text: 'Gives it another deployment flavour of its package.' },
  { task: 'change_vnfpkg', link: 'changeCurrentVnfPkg', name: 'Change package', text: 'Brings it to another package, as for a new version.' },
  { task: 'modify', link: '', name: 'Modify', text: 'Changes its name, its description and its stored values.' },
  { task: 'terminate', link: 'terminate', name: 'Terminate', text: 'Removes its machines or objects; the instance itself stays.' },
];
